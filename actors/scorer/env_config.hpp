// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "actors/assembler/filter_config.hpp"
#include "actors/scorer/reference_config.hpp"
#include "runtime/result.hpp"

namespace millrace {

/// Which component of the loss trains the model's own tokens.
enum class action_loss : std::uint8_t {
  automatic, ///< the algorithm's own: sft ce, opd and opsd ref_kl, all others rl
  rl,
  ce,
  ref_kl
};

/// Whose tokens the episodes of an environment hold.
enum class sampler_kind : std::uint8_t {
  any,   ///< whatever each episode says of itself
  live,  ///< the policy that is trained
  frozen ///< a model that is not the policy, or people: for sft
};

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

  bool operator==(const length_penalty &) const = default;
};

/// Rejects a group that teaches nothing. Config keys: env.NAME.gate.reject_min and reject_max, both
/// or none. Default: off, then pruning alone drops what has no gradient. A group is gated if all
/// its advantages lie within both bounds; wider: fewer groups of clearer signal. [0, 0] rejects
/// uniform groups.
struct gate_config {
  std::optional<double> reject_min;
  std::optional<double> reject_max;
};

/// For echo. Config keys: env.NAME.echo.*.
struct echo_config {
  /// Weight in the ce loss of the tokens of each role, for nodes that no model sampled and that
  /// come after a sampled one. Range: 0 to 1e6. Default: none, which echo refuses. Larger: the
  /// model learns more of what the environment says, and less of what earns rewards.
  std::map<std::string, double> roles;
};

/// What a failed episode (errored, cancelled, rejected) means for its group.
enum class group_scoring : std::uint8_t {
  survivors, ///< nothing: those that are left are scored
  unit       ///< none of it is trained
};

/// How the episodes of one environment are scored. Config keys: env.NAME.*; an environment that the
/// config does not name has the defaults.
struct env_config {
  /// Episodes in a group. Range: 0 to 65,535. Default: 0, the frames say it. Where both say it they
  /// must agree.
  std::uint32_t group_size = 0;

  /// Key: group_scoring. Default: survivors. unit: for rewards that compare all members; one
  /// failed episode then costs the work of the whole group.
  group_scoring scoring = group_scoring::survivors;

  /// Key: group_deadline. Unit: s. Range: 0 (none) to 604,800. Default: 0. From the first message
  /// of a group at its assembler; a group that is not complete by then ends, and what still comes
  /// of it is late. Too little: slow episodes take their group with them.
  double deadline_s = 0;

  /// A name of algorithm_names(). Default: "grpo".
  std::string algorithm = "grpo";

  /// Default: automatic. ce trains on the tokens as they are, whatever the reward; ref_kl pulls
  /// towards the reference policy and needs its logprobs. sft, opd and opsd allow no other than
  /// their own.
  action_loss action_loss_type = action_loss::automatic;

  /// Default: any. An episode that says otherwise is rejected by the reader. sft wants frozen: on
  /// the policy's own tokens it would only sharpen what the policy does anyway.
  sampler_kind sampler = sampler_kind::any;

  gate_config gate;

  /// For grpo and echo.
  length_penalty penalty;

  /// For grpo and echo. True: the baseline weighs each trace by its trainable tokens, so that the
  /// advantages summed over tokens are zero. Default: false.
  bool length_weighted_baseline = false;

  /// For grpo and echo. Default: mean.
  loss_aggregation aggregation = loss_aggregation::mean;

  /// For hierarchical_grpo: names of agents whose traces are compared within their episode; those
  /// of all others are compared over the group. Default: none.
  std::vector<std::string> episode_agents;

  /// For rae: share of an agent's baseline that a new reward leaves. Range: 0 to below 1. Default:
  /// 0.95. Larger: a steadier baseline that follows a change of the policy later; 0: the last
  /// reward.
  double decay = 0.95;

  echo_config echo;

  /// For opd and opsd. Key: teacher.*. The model server whose logprobs they train towards: opd: of
  /// a teacher; opsd: of the live policy.
  model_server teacher;

  /// For opd and opsd. Key: reference.*.
  reference_limits reference;

  /// Sampling temperature of the policy, on every token of a sample. Range: 1e-6 to 1e4.
  /// Default: 1. Wrong: the trainer's logprobs do not fit those of the sampler.
  double temperature = 1.0;

  /// What is looked for in the tokens of each trace, and what becomes of it. Default: nothing.
  filter_config filter{};

  /// The loss of the model's tokens: action_loss_type, or the algorithm's own. Never automatic.
  action_loss loss() const noexcept;

  /// What `sampler` demands of EpisodeFrame.frozen; nothing: either.
  std::optional<bool> demands_frozen() const noexcept {
    return sampler == sampler_kind::any ? std::nullopt
                                        : std::optional(sampler == sampler_kind::frozen);
  }

  /// Whether its traces need hints (TraceResult.hint): for opsd.
  bool demands_hints() const noexcept { return algorithm == "opsd"; }

  /// Ranges and the rules between fields: all that are broken, each with its key's full name.
  /// @param section where its keys stand: "env.NAME" or "env_default".
  /// @param base what it started from: an option of another algorithm that it has from there has no
  /// effect, one of its own is an error.
  std::vector<error> validate(std::string_view section, const env_config &base) const;
};

} // namespace millrace
