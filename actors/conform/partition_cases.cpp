// SPDX-License-Identifier: Apache-2.0
#include "actors/conform/cases.hpp"
#include "actors/conform/comparison.hpp"
#include "actors/planner/partition.hpp"

namespace millrace {

namespace {

void compare_parts(comparison &to, const json::value &entry, std::string_view key,
                   const partitioning &got) {
  const auto want = to.field(entry, key);
  const auto each = want ? to.items(*want, got.size()) : std::nullopt;
  for (std::size_t r = 0; each && r < got.size(); ++r)
    to.integers((*each)[r], std::vector<std::uint32_t>(got[r].begin(), got[r].end()));
}

result<std::vector<cost_t>> read_weights(const json::value &entry) {
  const auto list = entry.get<json::value>("weights");
  const auto items = list ? list->items() : tl::unexpected(list.error());
  if (!items)
    return tl::unexpected(items.error());
  std::vector<cost_t> out;
  for (const auto &item : *items) {
    const auto weight = item.as<std::uint64_t>();
    if (!weight)
      return tl::unexpected(weight.error());
    out.push_back(*weight);
  }
  return out;
}

status run_entry(comparison &to, const json::value &entry) {
  const auto weights = read_weights(entry);
  if (!weights)
    return tl::unexpected(weights.error());
  const auto k = entry.get<std::uint64_t>("num_partitions");
  if (!k)
    return tl::unexpected(k.error());
  const auto before = difference(*weights, *k);
  if (!before)
    return tl::unexpected(before.error());
  compare_parts(to, entry, "after_differencing", *before);
  const auto after = partition(*weights, *k);
  if (!after)
    return tl::unexpected(after.error());
  compare_parts(to, entry, "expected", *after);
  return {};
}

} // namespace

case_outcome run_partition_case(const json::value &test) {
  const auto list = test.get<json::value>("entries");
  const auto entries = list ? list->items() : tl::unexpected(list.error());
  if (!entries)
    return case_outcome::fail(entries.error().message);
  comparison to;
  for (const auto &entry : *entries)
    if (const auto done = run_entry(to, entry); !done)
      return case_outcome::fail(fmt::format("{}: {}", entry.path(), done.error().message));
  return to.equal() ? case_outcome::pass() : case_outcome::fail(to.difference());
}

} // namespace millrace
