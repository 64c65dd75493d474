// SPDX-License-Identifier: Apache-2.0
#include "actors/scorer/grpo.hpp"

#include <algorithm>
#include <cmath>

namespace millrace {

namespace {

/// Rewards that agree in float32 are equal: noise of a few doubles must not become a gradient.
double as_float32(double value) { return static_cast<double>(static_cast<float>(value)); }

double input_tokens(const trace_score_input &trace) {
  return trace.total_tokens < trace.output_tokens
             ? 0
             : static_cast<double>(trace.total_tokens - trace.output_tokens);
}

double mean_of(std::span<const double> values) {
  double sum = 0;
  for (auto x : values)
    sum += x;
  return sum / static_cast<double>(values.size());
}

void penalise(std::vector<double> &rewards, std::span<const trace_score_input> traces,
              const length_penalty &weights) {
  double most_output = 1;
  double most_input = 1;
  double most_turns = 1;
  for (const auto &trace : traces) {
    most_output = std::max(most_output, static_cast<double>(trace.output_tokens));
    most_input = std::max(most_input, input_tokens(trace));
    most_turns = std::max(most_turns, static_cast<double>(trace.turns));
  }
  const auto mean = mean_of(rewards);
  for (std::size_t i = 0; i < traces.size(); ++i) {
    const auto fraction =
        weights.num_output_tokens_weight * static_cast<double>(traces[i].output_tokens) /
            most_output +
        weights.num_input_tokens_weight * input_tokens(traces[i]) / most_input +
        weights.num_turns_weight * static_cast<double>(traces[i].turns) / most_turns;
    rewards[i] = as_float32(rewards[i] - mean * fraction);
  }
}

double length_weighted_mean(std::span<const double> rewards,
                            std::span<const trace_score_input> traces) {
  double sum = 0;
  double weight = 0;
  for (std::size_t i = 0; i < traces.size(); ++i) {
    const auto tokens = static_cast<double>(traces[i].trainable_tokens);
    sum += tokens * rewards[i];
    weight += tokens;
  }
  return sum / weight;
}

bool all_equal(std::span<const double> values) {
  return std::all_of(values.begin(), values.end(), [&](double x) { return x == values.front(); });
}

} // namespace

result<group_score> grpo(std::span<const trace_score_input> traces, const env_config &config) {
  std::vector<double> rewards;
  for (const auto &trace : traces)
    rewards.push_back(as_float32(trace.reward));
  const auto &weights = config.penalty;
  if (weights.num_output_tokens_weight != 0 || weights.num_input_tokens_weight != 0 ||
      weights.num_turns_weight != 0)
    penalise(rewards, traces, weights);

  group_score out;
  const bool uniform = all_equal(rewards);
  const auto baseline =
      config.length_weighted_baseline ? length_weighted_mean(rewards, traces) : mean_of(rewards);
  for (std::size_t i = 0; i < traces.size(); ++i) {
    const auto advantage = uniform ? 0.0F : static_cast<float>(rewards[i] - baseline);
    if (!std::isfinite(advantage))
      return fail(errc::bad_value,
                  "grpo: the advantage of episode {} is {} (reward {}, baseline {})",
                  traces[i].episode, advantage, traces[i].reward, baseline);
    out.advantages.emplace_back(advantage);
  }
  if (config.aggregation == loss_aggregation::prompt) {
    std::uint64_t tokens = 0;
    for (const auto &trace : traces)
      tokens += trace.trainable_tokens;
    out.rl_weight = static_cast<float>(1.0 / static_cast<double>(tokens));
  }
  return out;
}

} // namespace millrace
