// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "runtime/result.hpp"

namespace millrace {

/// What the losses read of a micro batch, as flat columns. N = tokens with padding, S = sequences.
/// Owner: the caller, for the call.
struct loss_columns {
  std::span<const std::int64_t> sequence_lengths;       ///< [S], at least 0; their sum is N
  std::span<const std::uint8_t> loss_mask;              ///< [N], 0 or 1
  std::span<const float> advantages;                    ///< [N]
  std::span<const float> inference_logprobs;            ///< [N], at sampling
  std::optional<std::span<const float>> ref_logprobs;   ///< [N], of the reference model
  std::optional<std::span<const float>> rl_weights;     ///< [N]; absent: 1 on the mask
  std::optional<std::span<const float>> ce_weights;     ///< [N]; absent: 0
  std::optional<std::span<const float>> ref_kl_weights; ///< [N]; absent: 0

  /// Errors: bad_value, with the name of a column that has not `tokens` values, or of a length that
  /// is wrong.
  status check(std::size_t tokens) const;
};

/// Errors: bad_value unless the column `name` has as many values as there are tokens.
status check_column(std::string_view name, std::size_t values, std::size_t tokens);

} // namespace millrace
