// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "actors/loss/loss.hpp"
#include "actors/loss/token_export.hpp"
#include "runtime/json.hpp"

namespace millrace {

/// The input of a golden case of the losses, or of token exports, which has more columns.
struct loss_case {
  loss_config config;
  loss_scales scales;
  export_place place;

  std::vector<std::int64_t> sequence_lengths;
  std::vector<std::uint8_t> loss_mask;
  std::vector<double> trainer_logprobs;
  std::vector<float> advantages;
  std::vector<float> inference_logprobs;
  std::optional<std::vector<float>> ref_logprobs;
  std::optional<std::vector<float>> rl_weights;
  std::optional<std::vector<float>> ce_weights;
  std::optional<std::vector<float>> ref_kl_weights;

  std::vector<std::int64_t> input_ids;
  std::vector<std::int64_t> position_ids;
  std::vector<float> entropy;
  std::vector<std::string> env_names;
  std::int32_t padding = 0;

  /// Views of the columns above.
  loss_columns columns() const;
};

/// Errors: bad_value if it is no such case.
result<loss_case> read_loss_case(const json::value &test);
result<loss_case> read_export_case(const json::value &test);

} // namespace millrace
