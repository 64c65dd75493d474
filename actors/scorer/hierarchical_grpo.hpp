// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "actors/scorer/algorithm.hpp"

namespace millrace {

/// A trace's reward against the mean of its peers: the traces of the same agent in the group, and
/// of the same episode too if `episode_agents` names the agent. In double; where all peers have one
/// reward their advantages are exactly zero. Source: docs/algorithms.md, "hierarchical_grpo".
result<group_score> hierarchical_grpo(std::span<const trace_score_input> traces,
                                      const env_config &config);

} // namespace millrace
