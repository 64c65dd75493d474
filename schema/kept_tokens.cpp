// SPDX-License-Identifier: Apache-2.0
#include "schema/kept_tokens.hpp"

#include <algorithm>
#include <cstring>

namespace millrace {

namespace {

/// Value number i; the bytes may lie at any address.
std::int32_t value_at(std::span<const std::byte> bytes, std::size_t i) noexcept {
  std::int32_t value = 0;
  std::memcpy(&value, bytes.data() + i * sizeof value, sizeof value);
  return value;
}

std::size_t values_in(std::span<const std::byte> bytes) noexcept {
  return bytes.size() / sizeof(std::int32_t);
}

status check_shape(std::string_view field, const array_view &array) {
  if (array.type != dtype::int32 || array.shape.size() != 1)
    return fail(errc::bad_value, "{} is {} of {} dimensions, int32 of one is wanted", field,
                name_of(array.type), array.shape.size());
  return {};
}

/// All values are in [0, limit). Negative ones become large.
status check_below(std::string_view field, const array_view &array, std::uint32_t limit) {
  std::uint64_t before = 0;
  for (auto piece : array.pieces) {
    const auto n = values_in(piece);
    std::uint32_t largest = 0;
    for (std::size_t i = 0; i < n; ++i)
      largest = std::max(largest, static_cast<std::uint32_t>(value_at(piece, i)));
    for (std::size_t i = 0; largest >= limit && i < n; ++i)
      if (const auto value = value_at(piece, i); static_cast<std::uint32_t>(value) >= limit)
        return fail(errc::bad_value, "{}[{}] is {}, it must be from 0 to {}", field, before + i,
                    value, limit - 1);
    before += n;
  }
  return {};
}

} // namespace

status check_kept_counts(const kept_tokens_view &kept, std::uint64_t tokens) {
  constexpr std::uint32_t no_int32 = 0x8000'0000U;
  if (kept.counts.has_value() != kept.ids.has_value())
    return fail(errc::bad_value, "{} is there without {}", kept.counts ? "kept_counts" : "kept_ids",
                kept.counts ? "kept_ids" : "kept_counts");
  if (!kept.counts)
    return {};
  MILLRACE_TRY(check_shape("kept_counts", *kept.counts));
  MILLRACE_TRY(check_shape("kept_ids", *kept.ids));
  if (kept.counts->rows() != tokens)
    return fail(errc::bad_value, "kept_counts has {} values for {} token ids", kept.counts->rows(),
                tokens);
  MILLRACE_TRY(check_below("kept_counts", *kept.counts, no_int32));
  if (const auto sum = kept_ids_of(*kept.counts, tokens); sum != kept.ids->rows())
    return fail(errc::bad_value, "kept_ids has {} values, kept_counts sum to {}", kept.ids->rows(),
                sum);
  return {};
}

status check_kept_ids(const kept_tokens_view &kept, std::uint32_t limit) {
  if (!kept.ids)
    return {};
  return check_below("kept_ids", *kept.ids, limit);
}

std::uint64_t kept_ids_of(const array_view &counts, std::uint64_t tokens) noexcept {
  std::uint64_t sum = 0;
  for (auto piece : counts.pieces) {
    const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(tokens, values_in(piece)));
    for (std::size_t i = 0; i < n; ++i)
      sum += static_cast<std::uint32_t>(value_at(piece, i));
    tokens -= n;
  }
  return sum;
}

} // namespace millrace
