// SPDX-License-Identifier: Apache-2.0
#include "actors/scorer/algorithm.hpp"

#include <array>

#include "actors/scorer/grpo.hpp"
#include "actors/scorer/hierarchical_grpo.hpp"
#include "actors/scorer/max_rl.hpp"
#include "actors/scorer/rae.hpp"

namespace millrace {

namespace {

using inputs = std::span<const trace_score_input>;

result<group_score> by_grpo(inputs traces, const env_config &config, agent_baselines &) {
  return grpo(traces, config);
}

result<group_score> by_hierarchical_grpo(inputs traces, const env_config &config,
                                         agent_baselines &) {
  return hierarchical_grpo(traces, config);
}

result<group_score> by_max_rl(inputs traces, const env_config &, agent_baselines &) {
  return max_rl(traces);
}

result<group_score> by_rae(inputs traces, const env_config &config, agent_baselines &state) {
  return rae(traces, config.decay, state);
}

/// The advantages that came with the nodes stay as they are.
result<group_score> keep_advantages(inputs traces, const env_config &, agent_baselines &) {
  group_score out;
  out.advantages.resize(traces.size());
  return out;
}

constexpr std::array table{
    algorithm{.name = "grpo", .score = by_grpo, .group_relative = true},
    algorithm{.name = "hierarchical_grpo", .score = by_hierarchical_grpo, .group_relative = true},
    algorithm{.name = "max_rl", .score = by_max_rl, .group_relative = true},
    algorithm{.name = "rae", .score = by_rae, .needs = score_needs::state},
    algorithm{.name = "echo", .score = by_grpo, .group_relative = true},
    algorithm{.name = "sft", .score = keep_advantages, .loss = action_loss::ce},
    algorithm{.name = "opd",
              .score = keep_advantages,
              .needs = score_needs::reference,
              .loss = action_loss::ref_kl},
    algorithm{.name = "opsd",
              .score = keep_advantages,
              .needs = score_needs::reference,
              .loss = action_loss::ref_kl},
    algorithm{.name = "none", .score = keep_advantages},
};

} // namespace

const algorithm *find_algorithm(std::string_view name) noexcept {
  for (const auto &entry : table)
    if (entry.name == name)
      return &entry;
  return nullptr;
}

std::string algorithm_names() {
  std::string out;
  for (const auto &entry : table)
    out += (out.empty() ? "" : ", ") + std::string(entry.name);
  return out;
}

} // namespace millrace
