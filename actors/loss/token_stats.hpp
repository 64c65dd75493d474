// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "actors/loss/loss_columns.hpp"

namespace millrace {

/// How the trainer's policy stands to the one that sampled, over tokens with a true mask, whatever
/// their weights. Sums that add up over sequences, micro batches and ranks. Unit: nats.
struct token_stats {
  std::uint64_t tokens = 0;
  double entropy = 0;
  double mismatch_kl = 0; ///< exp(d) - d - 1, of d = trainer - inference logprob
  double ratio = 0;       ///< exp(d)
  double ratio_min = std::numeric_limits<double>::infinity();
  double ratio_max = -std::numeric_limits<double>::infinity();

  token_stats &operator+=(const token_stats &other) noexcept;
};

/// Of each sequence. @param trainer_logprobs [N] @param entropy [N]. Precondition: columns.check().
/// Each token is computed in float32, as its loss is. Source: docs/losses.md, "Metrics".
std::vector<token_stats> stats_of(const loss_columns &columns,
                                  std::span<const float> trainer_logprobs,
                                  std::span<const float> entropy);

} // namespace millrace
