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

/// For config/five-algorithms.toml: an environment for each of five ways to score.
constexpr std::array five_algorithms{
    synth_environment{.name = "maths",
                      .groups = 24,
                      .prompt = {60, 300},
                      .answer = {100, 2500},
                      .errored_percent = 4,
                      .cancelled_percent = 3,
                      .uniform_percent = 20,
                      .stale_percent = 10,
                      .late_percent = 6},
    synth_environment{.name = "terminal",
                      .groups = 16,
                      .size_place = synth_size_place::frames,
                      .turns_low = 2,
                      .turns_high = 6,
                      .prompt = {100, 500},
                      .answer = {40, 600},
                      .tool = {40, 1500},
                      .fork_percent = 25,
                      .errored_percent = 6,
                      .cancelled_percent = 2,
                      .graded = true,
                      .stale_percent = 5,
                      .late_percent = 4},
    synth_environment{.name = "debate",
                      .groups = 20,
                      .group_size = 4,
                      .turns_low = 2,
                      .turns_high = 4,
                      .prompt = {60, 300},
                      .answer = {100, 800},
                      .tool = {60, 500},
                      .errored_percent = 3,
                      .cancelled_percent = 3,
                      .rivals = true,
                      .stale_percent = 5,
                      .late_percent = 4},
    synth_environment{.name = "proofs",
                      .groups = 12,
                      .size_place = synth_size_place::record,
                      .prompt = {80, 400},
                      .answer = {200, 1800},
                      .errored_percent = 5,
                      .graded = true,
                      .rivals = true,
                      .stale_percent = 8},
    synth_environment{.name = "demos",
                      .groups = 12,
                      .group_size = 4,
                      .turns_low = 1,
                      .turns_high = 3,
                      .prompt = {60, 400},
                      .answer = {100, 1500},
                      .tool = {50, 400},
                      .errored_percent = 4,
                      .frozen = true},
};

constexpr std::array presets{
    synth_preset{.name = "quickstart", .vocab_size = 32'000, .environments = quickstart},
    synth_preset{.name = "five-algorithms", .vocab_size = 32'000, .environments = five_algorithms},
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
