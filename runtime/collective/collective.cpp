// SPDX-License-Identifier: Apache-2.0
#include "runtime/collective/collective.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

namespace millrace {

namespace {

enum operation : std::uint32_t { all_reduce_int64, all_reduce_double, all_gather_bytes, broadcast };

constexpr std::array operation_names = {"all_reduce of int64", "all_reduce of double", "all_gather",
                                        "broadcast"};
constexpr std::array reduction_names = {"sum", "min", "max"};

template <class T> bool reduce_into(T &total, T value, reduction how) {
  switch (how) {
  case reduction::min:
    total = std::min(total, value);
    return true;
  case reduction::max:
    total = std::max(total, value);
    return true;
  case reduction::sum:
    if constexpr (std::is_integral_v<T>)
      return !__builtin_add_overflow(total, value, &total);
    total += value;
    return true;
  }
  return false;
}

} // namespace

/// What a rank is about to do; travels as these bytes, little-endian, and is the same size for
/// every call, so it can be exchanged before anything is known to fit.
struct collective::request {
  std::uint32_t operation;
  std::uint32_t detail; ///< the reduction, or the root of a broadcast
  std::uint64_t bytes;
  std::uint64_t step; ///< for the message only

  bool fits(const request &other) const {
    return operation == other.operation && detail == other.detail && bytes == other.bytes;
  }

  std::string text() const {
    if (operation >= operation_names.size())
      return fmt::format("an unknown call {}", operation);
    std::string name = operation_names[operation];
    if (operation == operation::broadcast)
      name += fmt::format(" from rank {}", detail);
    else if (operation != operation::all_gather_bytes && detail < reduction_names.size())
      name += fmt::format(" ({})", reduction_names[detail]);
    return fmt::format("{} with {} bytes in step {}", name, bytes, step);
  }
};

collective::collective(int rank, int size) : rank_(rank), size_(size) {
  MILLRACE_ASSERT(size > 0 && rank >= 0 && rank < size, "rank {} of {}", rank, size);
}

status collective::gather(collective_site site, const request &mine,
                          std::span<const std::byte> bytes, std::span<std::byte> all) {
  const auto place = [&] {
    return fmt::format("step {}: {} of {}, rank {} of {}", site.step,
                       operation_names[mine.operation], site.what, rank_, size_);
  };
  std::vector<request> requests(static_cast<std::size_t>(size_));
  const std::span<const request> one(&mine, 1);
  if (auto done = exchange(std::as_bytes(one), std::as_writable_bytes(std::span(requests))); !done)
    return with_context(std::move(done).error(), place());
  for (std::size_t i = 1; i < requests.size(); ++i)
    if (!requests[i].fits(requests[0]))
      return fail(errc::conflict,
                  "the ranks call different collectives: rank 0: {}; rank {}: {}; all of them must "
                  "be handed the same plan",
                  requests[0].text(), i, requests[i].text());
  if (auto done = exchange(bytes, all); !done)
    return with_context(std::move(done).error(), place());
  return {};
}

template <class T>
status collective::reduce(collective_site site, std::span<T> values, reduction how,
                          std::uint32_t operation) {
  std::vector<T> all(values.size() * static_cast<std::size_t>(size_));
  const request mine{operation, static_cast<std::uint32_t>(how), values.size_bytes(), site.step};
  MILLRACE_TRY(gather(site, mine, std::as_bytes(values), std::as_writable_bytes(std::span(all))));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = all[i];
    for (std::size_t at = i + values.size(); at < all.size(); at += values.size())
      if (!reduce_into(values[i], all[at], how))
        return fail(errc::bad_value,
                    "step {}: all_reduce of {}: the sum of value {} does not fit into int64",
                    site.step, site.what, i);
  }
  return {};
}

status collective::all_reduce(collective_site site, std::span<std::int64_t> values, reduction how) {
  return reduce(site, values, how, operation::all_reduce_int64);
}

status collective::all_reduce(collective_site site, std::span<double> values, reduction how) {
  return reduce(site, values, how, operation::all_reduce_double);
}

status collective::all_gather(collective_site site, std::span<const std::byte> mine,
                              std::span<std::byte> all) {
  MILLRACE_ASSERT(all.size() == mine.size() * static_cast<std::size_t>(size_),
                  "all_gather of {} bytes by {} ranks into {}", mine.size(), size_, all.size());
  return gather(site, {operation::all_gather_bytes, 0, mine.size(), site.step}, mine, all);
}

status collective::broadcast(collective_site site, std::span<std::byte> bytes, int root) {
  MILLRACE_ASSERT(root >= 0 && root < size_, "broadcast from rank {} of {}", root, size_);
  std::vector<std::byte> all(bytes.size() * static_cast<std::size_t>(size_));
  const auto from = static_cast<std::uint32_t>(root);
  MILLRACE_TRY(gather(site, {operation::broadcast, from, bytes.size(), site.step}, bytes, all));
  std::copy_n(all.data() + from * bytes.size(), bytes.size(), bytes.data());
  return {};
}

} // namespace millrace
