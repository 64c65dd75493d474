// SPDX-License-Identifier: Apache-2.0
#include "actors/scorer/max_rl.hpp"

#include <cmath>

namespace millrace {

result<group_score> max_rl(std::span<const trace_score_input> traces) {
  std::vector<double> rewards;
  double sum = 0;
  float rounded_sum = 0; // rewards that cancel in float32 have the mean 0 there
  bool equal = true;
  for (const auto &trace : traces) {
    rewards.push_back(static_cast<double>(static_cast<float>(trace.reward)));
    sum += rewards.back();
    rounded_sum += static_cast<float>(trace.reward);
    equal = equal && rewards.back() == rewards.front();
  }
  const auto mean = sum / static_cast<double>(rewards.size());
  group_score out;
  for (std::size_t i = 0; i < traces.size(); ++i) {
    const bool zero = equal || !(mean > 0) || !(rounded_sum > 0);
    const auto advantage = zero ? 0.0F : static_cast<float>((rewards[i] - mean) / mean);
    if (!std::isfinite(advantage))
      return fail(errc::bad_value, "max_rl: the advantage of episode {} is {} (reward {}, mean {})",
                  traces[i].episode, advantage, traces[i].reward, mean);
    out.advantages.emplace_back(advantage);
  }
  return out;
}

} // namespace millrace
