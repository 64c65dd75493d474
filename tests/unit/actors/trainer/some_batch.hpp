// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "actors/trainer/policy.hpp"

namespace millrace::test {

template <class T, class From> void fill(host_array<T> &array, const std::vector<From> &values) {
  const auto out = array.resize(values.size());
  std::ranges::transform(values, out.begin(), [](From value) { return static_cast<T>(value); });
}

/// Tensors of sequences of one environment each; the first token of each is a prompt, the others
/// are sampled and trained.
inline micro_batch_tensors some_tensors(const std::vector<std::vector<std::int64_t>> &sequences,
                                        float temperature = 1) {
  micro_batch_tensors out;
  std::vector<std::int64_t> ids, positions, lengths;
  std::vector<std::uint8_t> mask;
  for (const auto &one : sequences) {
    ids.insert(ids.end(), one.begin(), one.end());
    for (std::size_t i = 0; i < one.size(); ++i) {
      positions.push_back(static_cast<std::int64_t>(i));
      mask.push_back(i == 0 ? 0 : 1);
    }
    lengths.push_back(static_cast<std::int64_t>(one.size()));
    out.env_names.push_back("env-" + std::to_string(out.env_names.size()));
  }
  const std::vector<float> some(ids.size(), 0.5F);
  fill(out.input_ids, ids);
  fill(out.position_ids, positions);
  fill(out.loss_mask, mask);
  fill(out.sequence_lengths, lengths);
  fill(out.seq_lens, lengths);
  fill(out.advantages, some);
  fill(out.inference_logprobs, std::vector<float>(ids.size(), -1.0F));
  fill(out.temperatures, std::vector<float>(ids.size(), temperature));
  return out;
}

} // namespace millrace::test
