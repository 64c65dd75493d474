// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "actors/scorer/algorithm.hpp"

namespace millrace {

/// Group relative policy optimisation: a trace's reward against the mean of its group, over all
/// agents, with a length penalty, a length-weighted baseline and prompt aggregation by config.
/// Rewards and penalised rewards are float32 values; where they are all equal the advantages are
/// exactly zero. Source: docs/algorithms.md, "grpo".
result<group_score> grpo(std::span<const trace_score_input> traces, const env_config &config);

} // namespace millrace
