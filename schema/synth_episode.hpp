// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/random.hpp"
#include "schema/episode_encoder.hpp"
#include "schema/synth_presets.hpp"

namespace millrace {

/// Which episode to make up.
struct synth_place {
  std::uint32_t environment = 0; ///< index in the preset
  std::uint32_t group = 0;       ///< in its environment
  std::uint32_t episode = 0;     ///< in its group
};

group_key synth_key(const synth_preset &preset, const synth_place &place);

/// The frames of one episode, in order: the prompt, then a frame for each model turn and what came
/// back. The prompt and whether all rewards are equal are the same for a whole group. The same seed
/// and place give the same values.
std::vector<frame_data> synth_episode(const synth_preset &preset, const random_source &seed,
                                      const synth_place &place);

} // namespace millrace
