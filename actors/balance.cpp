// SPDX-License-Identifier: Apache-2.0
#include "actors/balance.hpp"

#include <map>

#include "runtime/result.hpp"

namespace millrace {

std::vector<group_difference> differing_groups(const ledger &entries,
                                               const recording_counts &expected, std::size_t most) {
  std::map<digest128, std::uint64_t> counted;
  for (const auto &group : entries.by_group)
    counted[group.key] += group.episodes;
  std::vector<group_difference> out;
  for (const auto &group : expected.groups) {
    const auto found = counted.find(digest_of(group.key));
    const auto here = found == counted.end() ? 0 : found->second;
    if (here != group.episodes() && out.size() < most)
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
