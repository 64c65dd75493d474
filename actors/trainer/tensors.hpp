// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "actors/packer/micro_batch.hpp"
#include "actors/trainer/component_totals.hpp"
#include "actors/trainer/host_array.hpp"
#include "runtime/dtype.hpp"

namespace millrace {

/// A raw array with its own dtype. Shape: `shape`, row-major, little-endian.
struct array_tensor {
  std::string name;
  dtype type = dtype::uint8;
  std::vector<std::uint64_t> shape;
  host_array<std::byte> bytes;

  bool has_value() const noexcept { return bytes.has_value(); }
};

/// A micro batch at the widths that a trainer reads. N = tokens and padding, S = sequences. Made by
/// widen(); the memory is used again for the next micro batch. Source: docs/algorithms.md,
/// "Packing".
struct micro_batch_tensors {
  std::uint64_t step = 0;
  std::uint32_t rank = 0;
  std::uint32_t index = 0;
  std::int64_t padding = 0; ///< trailing tokens of N that are padding

  host_array<std::int64_t> input_ids;        ///< [1, N]
  host_array<std::uint8_t> loss_mask;        ///< [1, N], bool: 0 or 1
  host_array<float> advantages;              ///< [1, N]
  host_array<float> inference_logprobs;      ///< [1, N]
  host_array<std::int64_t> position_ids;     ///< [1, N], from 0 in each sequence
  host_array<float> temperatures;            ///< [1, N]
  host_array<std::int64_t> sequence_lengths; ///< [S]; the last one holds the padding
  host_array<std::int64_t> seq_lens;         ///< [S], the same values
  std::vector<std::string> env_names;        ///< [S]

  host_array<float> ref_logprobs;   ///< [1, N] or absent
  host_array<float> rl_weights;     ///< [1, N] or absent: 1 on the mask
  host_array<float> ce_weights;     ///< [1, N] or absent: 0
  host_array<float> ref_kl_weights; ///< [1, N] or absent: 0

  array_tensor routed_experts; ///< [N, layers, top_k] or absent; padding rows are 0
  /// The first `mm_count` are the image tensors, ascending by name; the others are spare memory.
  std::vector<array_tensor> mm_arrays;
  std::size_t mm_count = 0;
  std::span<const array_tensor> mm_kwargs() const noexcept {
    return std::span(mm_arrays).first(mm_count);
  }
  host_array<std::int64_t> mm_token_type_ids; ///< [1, N] or absent

  /// int32 [N] or absent, with kept_ids: how many token ids the sampler left to choose from; 0: all
  /// of them, or no model sampled the token, or it is padding.
  array_tensor kept_counts;
  array_tensor kept_ids; ///< int32 [sum of kept_counts]: those ids, token after token

  /// N.
  std::size_t tokens() const noexcept { return input_ids.size(); }
  /// Bytes of all values.
  std::uint64_t bytes() const noexcept;
};

/// Writes a micro batch as tensors, padding included. Thread: one at a time for each `out`.
void widen(const micro_batch &batch, micro_batch_tensors &out);

/// Tokens that enter each component of the loss: of rl those whose mask is true and whose rl weight
/// is not 0 (without a stream: all on the mask), of the others those with a weight that is not 0.
component_totals count_components(const micro_batch_tensors &tensors) noexcept;

} // namespace millrace
