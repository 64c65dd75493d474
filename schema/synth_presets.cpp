// SPDX-License-Identifier: Apache-2.0
#include "schema/synth_presets.hpp"

#include <array>

namespace millrace {

namespace {

/// About 500 episodes and 2.5 million tokens; with sequences of 8,192 some samples are cut.
constexpr std::array quickstart{
    synth_environment{.name = "math",
                      .groups = 24,
                      .size_place = synth_size_place::both,
                      .prompt = {60, 400},
                      .answer = {200, 9000},
                      .errored_percent = 2,
                      .uniform_percent = 30},
    synth_environment{.name = "code",
                      .groups = 20,
                      .size_place = synth_size_place::frames,
                      .turns_low = 3,
                      .turns_high = 9,
                      .prompt = {200, 1500},
                      .answer = {60, 1600},
                      .tool = {40, 3000},
                      .fork_percent = 25,
                      .errored_percent = 6,
                      .cancelled_percent = 2,
                      .uniform_percent = 20,
                      .graded = true},
    synth_environment{.name = "search",
                      .groups = 8,
                      .size_place = synth_size_place::record,
                      .turns_low = 2,
                      .turns_high = 5,
                      .prompt = {50, 300},
                      .answer = {80, 1200},
                      .tool = {200, 2500},
                      .fork_percent = 10,
                      .errored_percent = 4,
                      .uniform_percent = 15,
                      .expert_layers = 6,
                      .expert_top_k = 2,
                      .experts = 64},
    synth_environment{.name = "charts",
                      .groups = 8,
                      .size_place = synth_size_place::both,
                      .turns_low = 1,
                      .turns_high = 3,
                      .prompt = {40, 200},
                      .answer = {100, 2000},
                      .tool = {100, 600},
                      .errored_percent = 3,
                      .uniform_percent = 15,
                      .graded = true,
                      .image_percent = 75,
                      .patch_values = 24},
    synth_environment{.name = "debate",
                      .groups = 6,
                      .group_size = 4,
                      .size_place = synth_size_place::frames,
                      .turns_low = 2,
                      .turns_high = 4,
                      .prompt = {100, 400},
                      .answer = {150, 1200},
                      .tool = {100, 800},
                      .cancelled_percent = 4,
                      .graded = true,
                      .judged = true},
};

constexpr std::array presets{
    synth_preset{.name = "quickstart", .vocab_size = 32'000, .environments = quickstart},
};

} // namespace

result<synth_preset> synth_preset_named(std::string_view name) {
  std::string known;
  for (const auto &preset : presets) {
    if (preset.name == name)
      return preset;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", preset.name);
  }
  return fail(errc::bad_argument, "unknown preset '{}'; known: {}", name, known);
}

} // namespace millrace
