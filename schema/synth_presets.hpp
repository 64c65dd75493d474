// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "runtime/result.hpp"

namespace millrace {

/// Bounds of a length; short ones are more common. Unit: tokens.
struct synth_length {
  std::uint32_t low = 0;
  std::uint32_t high = 0;
};

/// Where a recording says how many episodes a group has.
enum class synth_size_place : std::uint8_t { frames, record, both };

/// One made-up environment. Percentages are of 100 cases.
struct synth_environment {
  std::string_view name{};
  std::uint32_t groups = 1; ///< at scale 1
  std::uint32_t group_size = 8;
  synth_size_place size_place = synth_size_place::both;

  std::uint32_t turns_low = 1; ///< model turns of a trace
  std::uint32_t turns_high = 1;
  synth_length prompt{};
  synth_length answer{}; ///< one model turn
  synth_length tool{};   ///< what comes back between two model turns

  std::uint32_t fork_percent = 0;      ///< traces that take a turn back and try again
  std::uint32_t errored_percent = 0;   ///< episodes that fail
  std::uint32_t cancelled_percent = 0; ///< episodes that are given up
  std::uint32_t uniform_percent = 0;   ///< groups in which all rewards are equal
  bool graded = false;                 ///< rewards in quarters; otherwise 0 or 1
  bool judged = false;                 ///< a second trace by a judge, who is not trained
  bool rivals = false;                 ///< a second trace by a rival, who is; one gains, one loses
  bool frozen = false;                 ///< sampled by a model that is not the policy
  std::uint32_t stale_percent = 0;     ///< episodes of policy version 0; the others are never late
  std::uint32_t late_percent = 0; ///< episodes that come once more when their group is complete

  std::uint32_t expert_layers = 0; ///< 0: no routed experts
  std::uint32_t expert_top_k = 0;
  std::uint32_t experts = 0;       ///< at most 256
  std::uint32_t image_percent = 0; ///< prompts and tool answers that show an image
  std::uint32_t patch_values = 0;  ///< float32 values of a patch
};

struct synth_preset {
  std::string_view name{};
  std::uint32_t vocab_size = 0;
  std::span<const synth_environment> environments{};
};

/// Errors: bad_argument; the message names the presets there are.
result<synth_preset> synth_preset_named(std::string_view name);

} // namespace millrace
