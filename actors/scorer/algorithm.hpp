// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "actors/scorer/env_config.hpp"
#include "runtime/result.hpp"

namespace millrace {

/// What an algorithm may know of one eligible trace. Traces of a group come by episode, in the
/// order of the episodes' first records, then by trace.
struct trace_score_input {
  std::uint32_t episode = 0; ///< index into the group's episodes
  std::string_view agent;
  double reward = 0; ///< finite
  std::uint64_t output_tokens = 0;
  std::uint64_t total_tokens = 0;
  std::uint64_t turns = 0;
  std::uint64_t trainable_tokens = 0; ///< at least 1
};

/// What an algorithm says of a group.
struct group_score {
  /// One for each trace: it goes to each of its trainable tokens. Nothing: the trace keeps the
  /// advantages that came with its nodes.
  std::vector<std::optional<float>> advantages;
  /// The rl weight of each trainable token of the group; nothing: no stream of the algorithm's.
  std::optional<float> rl_weight;
};

/// Scores the eligible traces of one group, of which there is at least one. Pure. Sums are double,
/// in index order, and rounded to float32 once. Errors: bad_value if a result is not a finite
/// float32.
using scoring_function = result<group_score> (*)(std::span<const trace_score_input> traces,
                                                 const env_config &config);

/// The algorithm of this name; null if there is none. A new one is a file with its function and a
/// line in the table behind this.
scoring_function find_algorithm(std::string_view name) noexcept;

/// All names, for messages: "grpo, none".
std::string_view algorithm_names() noexcept;

} // namespace millrace
