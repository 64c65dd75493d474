// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "actors/trainer/tensors.hpp"
#include "tests/support/random_bins.hpp"

namespace millrace::test {

/// A micro batch at trainer widths as plain lists.
struct naive_batch {
  std::vector<std::int64_t> input_ids, position_ids, sequence_lengths;
  std::vector<std::uint8_t> loss_mask;
  std::vector<float> advantages, inference_logprobs, temperatures;
  std::optional<std::vector<float>> ref_logprobs, rl_weights, ce_weights, ref_kl_weights;
  std::optional<std::vector<std::int64_t>> mm_token_type_ids;
  std::optional<made_array> routed_experts;
  std::map<std::string, made_array> mm_kwargs;
  std::optional<std::vector<std::vector<std::int32_t>>> kept_tokens; ///< the ids of each token
  std::vector<std::string> env_names;
  std::int64_t padding = 0;
};

/// Makes samples token by token, cuts, joins and pads them as docs/algorithms.md says, without any
/// of the shortcuts of gather() and widen().
naive_batch pack_naively(const bin &plan);

/// Checks every field of the tensors with Boost.Test.
void check_equal(const micro_batch_tensors &got, const naive_batch &want);

} // namespace millrace::test
