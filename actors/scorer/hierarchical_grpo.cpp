// SPDX-License-Identifier: Apache-2.0
#include "actors/scorer/hierarchical_grpo.hpp"

#include <algorithm>
#include <cmath>

namespace millrace {

namespace {

/// The rewards of traces that are compared with each other.
struct peers {
  double sum = 0;
  double count = 0;
  double first = 0;
  bool equal = true;

  void add(double reward) {
    if (count == 0)
      first = reward;
    equal = equal && reward == first;
    sum += reward;
    ++count;
  }
};

/// An agent, and its episode if its traces are compared within it.
using peers_key = std::pair<std::string_view, std::optional<std::uint32_t>>;

peers_key key_of(const trace_score_input &trace, const env_config &config) {
  const auto &names = config.episode_agents;
  if (std::find(names.begin(), names.end(), trace.agent) == names.end())
    return {trace.agent, std::nullopt};
  return {trace.agent, trace.episode};
}

} // namespace

result<group_score> hierarchical_grpo(std::span<const trace_score_input> traces,
                                      const env_config &config) {
  std::map<peers_key, peers> all;
  for (const auto &trace : traces)
    all[key_of(trace, config)].add(trace.reward);
  group_score out;
  for (const auto &trace : traces) {
    const auto &mine = all[key_of(trace, config)];
    const auto mean = mine.sum / mine.count;
    const auto advantage = mine.equal ? 0.0F : static_cast<float>(trace.reward - mean);
    if (!std::isfinite(advantage))
      return fail(errc::bad_value,
                  "hierarchical_grpo: the advantage of episode {} is {} (reward {}, mean {})",
                  trace.episode, advantage, trace.reward, mean);
    out.advantages.emplace_back(advantage);
  }
  return out;
}

} // namespace millrace
