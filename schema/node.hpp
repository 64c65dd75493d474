// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "schema/array.hpp"

namespace millrace {

/// One message node as the maths sees it: spans into whatever holds the values (a frame, or vectors
/// in a test). n = token_ids.size(), k = true entries of mask. Owner: the caller keeps the bytes
/// alive.
struct node_view {
  std::int32_t parent = -1; ///< index of the parent in the same trace; -1 for a root
  std::string_view role;
  bool sampled = false;
  std::span<const std::int32_t> token_ids;                        ///< [n]
  std::span<const std::uint8_t> mask;                             ///< [n], 0 or 1
  std::span<const std::uint8_t> is_content;                       ///< [n] or empty
  std::span<const float> logprobs;                                ///< [k]
  std::optional<std::span<const float>> advantages;               ///< [k]
  std::optional<std::span<const float>> reference_logprobs;       ///< [k]
  std::optional<std::span<const float>> rl_weights;               ///< [n]
  std::optional<std::span<const float>> ce_weights;               ///< [n]
  std::optional<std::span<const float>> ref_kl_weights;           ///< [n]
  std::optional<std::span<const std::uint8_t>> mm_token_type_ids; ///< [n]
  std::optional<std::span<const std::uint8_t>> echo_mask;         ///< [n], 0 or 1
  std::optional<array_view> routed_experts;                       ///< [n, layers, top_k]
  std::vector<array_view> tensors;                                ///< image tensors by name
  std::optional<array_view> kept_counts;                          ///< int32 [n], with kept_ids
  std::optional<array_view> kept_ids; ///< int32 [sum of kept_counts]: schema/kept_tokens.hpp
};

/// What one node must satisfy on its own: mask as long as the tokens and of 0 and 1, compact arrays
/// as long as the mask's true count, weights and type ids as long as the tokens, everything finite,
/// ids in [0, vocab_size), experts with one row a token, kept tokens that fit theirs. The message
/// names the field and both
/// lengths. Errors: bad_value.
/// @param vocab_size 0: ids are only checked to be non-negative.
status check_node(const node_view &node, std::uint32_t vocab_size);

/// Number of true entries of a mask of zeros and ones.
std::size_t count_true(std::span<const std::uint8_t> mask) noexcept;

} // namespace millrace
