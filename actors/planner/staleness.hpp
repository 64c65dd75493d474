// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "actors/planner/ready_group.hpp"
#include "actors/reader/source_config.hpp"

namespace millrace {

/// How old an episode is, and may be. Source: docs/algorithms.md, "Staleness".
struct staleness_rule {
  source_version version;
  std::optional<std::uint64_t> limit; ///< none: never too old

  /// In step s, which trains version s - 1: max(0, s - 1 - first version). Frozen ones never age.
  /// Unit: versions.
  std::uint64_t of(const wire::EpisodeHeader &episode, std::uint64_t step) const noexcept;
};

/// What is left of a group for a step.
struct left_over {
  std::uint64_t traces = 0; ///< with a kept sample
  std::uint64_t tokens = 0; ///< of kept samples, after the cut at seq_len
};

/// Marks the samples of episodes that are too old for this step as stale, and no others.
left_over judge(ready_group &group, std::uint64_t step, const staleness_rule &rule);

/// Episodes with a packed sample in this step, by staleness, ascending.
std::vector<staleness_count> ages_of(const std::vector<const ready_group *> &groups,
                                     std::uint64_t step, const staleness_rule &rule);

} // namespace millrace
