// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "actors/scorer/algorithm.hpp"

namespace millrace {

/// Role-conditioned advantage estimation: trace by trace, a reward against the running mean of its
/// agent's rewards, which it then moves. In double. Source: docs/algorithms.md, "rae".
/// @param baselines of each agent that had a trace before; another one starts at 0
result<group_score> rae(std::span<const trace_score_input> traces, double decay,
                        agent_baselines &baselines);

/// The baselines as a wire::AgentBaselines body: agents by name, so that equal baselines are equal
/// bytes.
std::vector<std::uint8_t> encode_baselines(const agent_baselines &baselines);

/// The reverse; no bytes: none. Errors: bad_format, bad_value: not what encode_baselines writes,
/// names that are not ascending, a value that is not finite.
result<agent_baselines> decode_baselines(std::span<const std::uint8_t> state);

} // namespace millrace
