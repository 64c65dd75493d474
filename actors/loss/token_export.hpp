// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "actors/loss/loss_columns.hpp"
#include "actors/loss/loss_config.hpp"

namespace millrace {

/// What an export reads of a micro batch beside the losses' columns. N and S are as there.
struct export_columns {
  loss_columns loss;
  std::span<const float> trainer_logprobs;    ///< [N]
  std::span<const float> entropy;             ///< [N]
  std::span<const std::int64_t> input_ids;    ///< [N]
  std::span<const std::int64_t> position_ids; ///< [N]
  std::span<const std::string> env_names;     ///< [S]
  std::int64_t padding = 0;                   ///< trailing tokens, counted in the last sequence
};

/// Where a micro batch stands.
struct export_place {
  std::uint64_t step = 0;
  std::uint32_t rank = 0;
  std::uint32_t micro_step = 0; ///< its index in the step
  std::uint64_t written = 0;    ///< records of this rank and step before it
};

/// A column that has no values is null on every token.
template <class T> using export_column = std::optional<std::vector<T>>;

/// The tokens of one sequence as people read them. Each column has one value per token, without
/// padding. Booleans are 0 or 1. Source: docs/losses.md, "Token export".
struct token_record {
  std::uint64_t step = 0;
  std::uint32_t rank = 0;
  std::uint32_t micro_step = 0;
  std::uint64_t micro_sequence_idx = 0;  ///< in its micro batch
  std::uint64_t export_sequence_idx = 0; ///< among the records of its rank and step
  std::string env_name;

  std::vector<std::int64_t> token_ids;
  std::vector<std::int64_t> position_ids;
  std::vector<std::uint8_t> loss_mask;
  std::vector<float> advantages;
  std::vector<float> inference_logprobs;
  std::vector<float> trainer_logprobs;
  std::vector<float> entropy;

  export_column<float> mismatch_kl;
  export_column<float> log_importance_ratio;
  export_column<float> importance_ratio;
  export_column<float> prob_delta;
  export_column<std::uint8_t> is_masked;
  export_column<std::uint8_t> is_masked_high; ///< with a positive advantage
  export_column<std::uint8_t> is_masked_low;  ///< with a negative one

  export_column<float> rl_weights;
  export_column<float> ce_weights;
  export_column<float> ref_kl_weights;
};

/// A record for each sequence that has a token with a true mask, in their order. Ratios are null
/// where nothing is trained by rl or ref_kl; is_masked and its two are those of the default rl term
/// and null for another. Errors: bad_value, with the name of a column of the wrong length, or for
/// more padding than the last sequence has tokens.
result<std::vector<token_record>>
token_records(const export_columns &columns, const loss_config &config, const export_place &place);

/// The record as one line of a JSON lines file, with the line end. Numbers that are not finite are
/// null.
std::string json_line(const token_record &record);

} // namespace millrace
