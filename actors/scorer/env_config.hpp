// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/result.hpp"

namespace millrace {

/// Which component of the loss trains the model's own tokens.
enum class action_loss : std::uint8_t { rl, ce, ref_kl };

/// What the loss of a token is divided by.
enum class loss_aggregation : std::uint8_t {
  mean,  ///< nothing here: each token counts alike, long answers weigh more
  prompt ///< the group's trainable tokens: each group (prompt) counts alike
};

/// How much of the mean reward a trace loses for its length, each term relative to the longest
/// trace of its group. Config keys: env.NAME.length_penalty.*. Range of each: 0 to 1e6. Default: 0,
/// and all 0 is off. Larger: shorter answers, and sooner worse ones. A group whose mean reward is
/// negative turns the penalty into a bonus.
struct length_penalty {
  double num_output_tokens_weight = 0; ///< tokens that the trace's model produced
  double num_input_tokens_weight = 0;  ///< all others
  double num_turns_weight = 0;         ///< model turns
};

/// Rejects a group that teaches nothing. Config keys: env.NAME.gate.reject_min and reject_max, both
/// or none. Default: off, then pruning alone drops what has no gradient. A group is gated if all
/// its advantages lie within both bounds; wider: fewer groups of clearer signal. [0, 0] rejects
/// uniform groups.
struct gate_config {
  std::optional<double> reject_min;
  std::optional<double> reject_max;
};

/// How the episodes of one environment are scored. Config keys: env.NAME.*; an environment that the
/// config does not name has the defaults.
struct env_config {
  /// Episodes in a group. Range: 0 to 65,535. Default: 0, the frames say it. Where both say it they
  /// must agree.
  std::uint32_t group_size = 0;

  /// A name of algorithm_names(). Default: "grpo".
  std::string algorithm = "grpo";

  /// Default: rl. ce trains on the tokens as they are, whatever the reward; ref_kl pulls towards
  /// the reference policy and needs its logprobs.
  action_loss action_loss_type = action_loss::rl;

  gate_config gate;

  /// For grpo.
  length_penalty penalty;

  /// For grpo. True: the baseline weighs each trace by its trainable tokens, so that the advantages
  /// summed over tokens are zero. Default: false.
  bool length_weighted_baseline = false;

  /// For grpo. Default: mean.
  loss_aggregation aggregation = loss_aggregation::mean;

  /// Sampling temperature of the policy, on every token of a sample. Range: 1e-6 to 1e4.
  /// Default: 1. Wrong: the trainer's logprobs do not fit those of the sampler.
  double temperature = 1.0;

  /// Ranges and the rules between fields: all that are broken, each with its key's full name.
  /// @param section where its keys stand: "env.NAME" or "env_default".
  std::vector<error> validate(std::string_view section) const;
};

} // namespace millrace
