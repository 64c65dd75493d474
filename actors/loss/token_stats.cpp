// SPDX-License-Identifier: Apache-2.0
#include "actors/loss/token_stats.hpp"

#include <algorithm>

#include "actors/loss/token_loss.hpp"

namespace millrace {

token_stats &token_stats::operator+=(const token_stats &other) noexcept {
  tokens += other.tokens;
  entropy += other.entropy;
  mismatch_kl += other.mismatch_kl;
  ratio += other.ratio;
  ratio_min = std::min(ratio_min, other.ratio_min);
  ratio_max = std::max(ratio_max, other.ratio_max);
  return *this;
}

std::vector<token_stats> stats_of(const loss_columns &columns,
                                  std::span<const float> trainer_logprobs,
                                  std::span<const float> entropy) {
  std::vector<token_stats> out;
  out.reserve(columns.sequence_lengths.size());
  std::size_t i = 0;
  for (const auto length : columns.sequence_lengths) {
    auto &sum = out.emplace_back();
    for (const auto end = i + static_cast<std::size_t>(length); i < end; ++i) {
      if (columns.loss_mask[i] == 0)
        continue;
      const auto token = ratio_of(trainer_logprobs[i], columns.inference_logprobs[i]);
      const auto ratio = static_cast<double>(token.ratio);
      ++sum.tokens;
      sum.entropy += static_cast<double>(entropy[i]);
      sum.mismatch_kl += static_cast<double>(token.mismatch_kl);
      sum.ratio += ratio;
      sum.ratio_min = std::min(sum.ratio_min, ratio);
      sum.ratio_max = std::max(sum.ratio_max, ratio);
    }
  }
  return out;
}

} // namespace millrace
