// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "actors/scorer/algorithm.hpp"
#include "actors/scorer/env_config.hpp"
#include "actors/scorer/reference.hpp"
#include "actors/scorer/verdict.hpp"
#include "runtime/frame.hpp"

namespace millrace {

/// What a group's answer may depend on beside its header. Owner: the caller, until annotate() is
/// back.
struct answer_inputs {
  /// Of the group's key, as the last answer left it; empty: none yet.
  std::span<const std::uint8_t> state{};
  /// For the traces of traces_without_reference(); may be null if there are none.
  const reference_logprobs *reference = nullptr;
};

struct group_answer {
  frame annotations;               ///< a wire::GroupAnnotations
  std::vector<std::uint8_t> after; ///< the key's state afterwards; empty if nothing is kept
};

/// A scorer's answer for one group. Scores the traces of episodes that are Ok and not for
/// evaluation (whatever became of their siblings), asks the gate, routes and prunes. Pure: the same
/// header, config and inputs give the same bytes. A group without eligible traces leaves the state
/// as it was. Errors: bad_value, bad_config, bad_format (the state), with the group's name; only
/// this group fails.
result<group_answer> annotate(const body<wire::GroupHeader> &group, const env_config &config,
                              const answer_inputs &inputs);

/// What annotate() needs for groups of this environment.
score_needs needs_of(const env_config &config) noexcept;

/// The key of an environment's state: groups of one key are answered one after the other. Only for
/// score_needs::state.
std::string state_key(std::string_view env);

/// The first part: the advantages.
/// @param state before; what the group leaves of it, afterwards. A group without eligible traces
/// has no scores. Errors: bad_config for an unknown algorithm, bad_value.
result<scored_group> score_group(const wire::GroupHeader &group, const env_config &config,
                                 agent_baselines &state);

/// The second part: what the scores mean for each sample.
group_verdict judge_group(const wire::GroupHeader &group, const scored_group &scores,
                          const env_config &config);

} // namespace millrace
