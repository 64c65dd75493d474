// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
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

/// What an algorithm keeps from group to group: a running mean of the rewards of each agent.
using agent_baselines = std::map<std::string, double, std::less<>>;

/// Scores the eligible traces of one group, of which there is at least one. Pure. Sums are double,
/// in index order, and rounded to float32 once. An algorithm that keeps no state leaves it alone.
/// Errors: bad_value if a result is not a finite float32; the state is then not to be used.
using scoring_function = result<group_score> (*)(std::span<const trace_score_input> traces,
                                                 const env_config &config, agent_baselines &state);

/// What an algorithm needs beside the header of the group.
enum class score_needs : std::uint8_t {
  nothing,
  state,    ///< what its last answer left
  reference ///< logprobs of a reference policy, where the nodes came without
};

/// One way to turn groups into advantages and losses.
struct algorithm {
  std::string_view name;
  scoring_function score;
  score_needs needs = score_needs::nothing;
  /// A trace is compared with others of its group: one episode alone teaches nothing.
  bool group_relative = false;
  /// The loss of the model's tokens unless the config says another.
  action_loss loss = action_loss::rl;
};

/// The algorithm of this name; null if there is none. A new one is a file with its function and a
/// line in the table behind this.
const algorithm *find_algorithm(std::string_view name) noexcept;

/// All names, for messages: "grpo, hierarchical_grpo, ...".
std::string algorithm_names();

} // namespace millrace
