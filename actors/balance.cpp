// SPDX-License-Identifier: Apache-2.0
#include "actors/balance.hpp"

#include <map>
#include <set>

#include "runtime/result.hpp"

namespace millrace {

std::vector<group_difference> differing_groups(const ledger &entries,
                                               const recording_counts &expected, std::size_t most) {
  std::map<digest128, std::uint64_t> counted;
  for (const auto &group : entries.by_group)
    counted[group.key] += group.episodes;
  std::set<digest128> closed; // by a deadline: what came too late is counted elsewhere
  for (const auto &[key, episodes] : entries.overdue)
    closed.insert(digest_of(key));
  std::vector<group_difference> out;
  for (const auto &group : expected.groups) {
    const auto key = digest_of(group.key);
    const auto found = counted.find(key);
    const auto here = found == counted.end() ? 0 : found->second;
    const bool differs = closed.contains(key) ? here > group.episodes() : here != group.episodes();
    if (differs && out.size() < most)
      out.push_back({group.key.text(), here, group.episodes()});
    if (found != counted.end())
      counted.erase(found);
  }
  for (const auto &group : entries.by_group) // what is left of them
    if (const auto found = counted.find(group.key); found != counted.end()) {
      if (found->second != 0 && out.size() < most)
        out.push_back({fmt::format("{} of source {}, which the recording does not have,",
                                   group.ordinal, group.source),
                       found->second, 0});
      counted.erase(found);
    }
  return out;
}

} // namespace millrace
