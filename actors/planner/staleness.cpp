// SPDX-License-Identifier: Apache-2.0
#include "actors/planner/staleness.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <set>

namespace millrace {

namespace {

/// version + offset, within the range of versions.
std::uint64_t shifted(std::uint64_t version, std::int64_t offset) noexcept {
  if (offset >= 0) {
    const auto room = std::numeric_limits<std::uint64_t>::max() - version;
    return version + std::min(room, static_cast<std::uint64_t>(offset));
  }
  const auto less = std::uint64_t{0} - static_cast<std::uint64_t>(offset);
  return version - std::min(version, less);
}

const wire::EpisodeHeader &episode_at(const ready_group &group, std::uint32_t index) {
  return *group.header->episodes()->Get(index);
}

} // namespace

std::uint64_t staleness_rule::of(const wire::EpisodeHeader &episode,
                                 std::uint64_t step) const noexcept {
  if (version.fresh || episode.frozen() || step == 0)
    return 0;
  const auto first = shifted(episode.first_version(), version.offset);
  return step - 1 - std::min(step - 1, first);
}

left_over judge(ready_group &group, std::uint64_t step, const staleness_rule &rule) {
  left_over out;
  const sample_record *last = nullptr; // samples of a trace are neighbours
  for (auto &sample : group.samples) {
    const bool old = rule.limit && rule.of(episode_at(group, sample.episode), step) > *rule.limit;
    sample.outcome = old ? sample_record::fate::stale : sample_record::fate::waiting;
    if (old)
      continue;
    if (last == nullptr || last->episode != sample.episode || last->trace != sample.trace)
      ++out.traces;
    out.tokens += sample.counted;
    last = &sample;
  }
  return out;
}

std::vector<staleness_count> ages_of(const std::vector<const ready_group *> &groups,
                                     std::uint64_t step, const staleness_rule &rule) {
  std::map<std::uint64_t, std::uint64_t> counts;
  for (const auto *group : groups) {
    std::set<std::uint32_t> episodes;
    for (const auto &sample : group->samples)
      if (sample.outcome == sample_record::fate::packed)
        episodes.insert(sample.episode);
    for (auto episode : episodes)
      ++counts[rule.of(episode_at(*group, episode), step)];
  }
  std::vector<staleness_count> out;
  for (const auto &[staleness, episodes] : counts)
    out.push_back({staleness, episodes});
  return out;
}

} // namespace millrace
