// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "actors/planner/plan.hpp"

namespace millrace {

/// What is kept of a sample: its first tokens and images.
struct kept {
  std::uint32_t tokens = 0; ///< 0: nothing is left
  std::uint32_t images = 0; ///< 0: text from here on

  bool operator==(const kept &) const = default;
};

/// Cuts a sample to at most seq_len tokens, never inside an image. Source: docs/algorithms.md,
/// "Packing", truncation. Precondition: 1 <= seq_len < 2^31.
/// Errors: bad_value, with the reason: no tokens, image tensors without an image, or an image
/// sample whose type ids, grid and patches do not allow a cut.
result<kept> cut(const sample_shape &sample, std::uint32_t seq_len);

} // namespace millrace
