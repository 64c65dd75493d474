// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "actors/planner/plan.hpp"

namespace millrace {

/// Pieces that will be one micro batch, before padding.
struct open_bin {
  std::vector<planned_piece> pieces; ///< in joining order
  std::uint32_t tokens = 0;          ///< their sum
  bool images = false;               ///< some piece keeps images
};

/// Puts each piece into the first bin, in creation order, that accepts it, or opens a new one.
/// A bin accepts a piece if its tokens stay within seq_len, if both have routed experts of one
/// signature or both none, and if, when both hold images, their tensors have the same signatures.
/// O(log bins) a piece; with image tensors of several signatures, as many times as bins with room
/// have another signature.
std::vector<open_bin> first_fit(std::span<const sample_shape> samples,
                                std::span<const planned_piece> pieces, std::uint32_t seq_len);

} // namespace millrace
