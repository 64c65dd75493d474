// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "actors/scorer/algorithm.hpp"

namespace millrace {

/// Maximum likelihood reinforcement learning: a reward's distance from the mean of its group,
/// divided by that mean, so that rare successes weigh more. Rewards are float32 values; where they
/// are all equal, or the mean is not positive, the advantages are exactly zero. Source:
/// docs/algorithms.md, "max_rl".
result<group_score> max_rl(std::span<const trace_score_input> traces);

} // namespace millrace
