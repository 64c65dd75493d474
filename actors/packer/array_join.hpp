// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "actors/packer/sequence_plan.hpp"

namespace millrace {

/// A raw array to be joined along its first axis from the first rows of other arrays. Owner: the
/// nodes keep the bytes and the name alive.
struct array_join {
  struct slice {
    const array_view *from = nullptr; ///< null: rows of zeros
    std::uint64_t rows = 0;
  };

  std::string_view name;
  dtype type = dtype::uint8;
  std::vector<std::uint64_t> shape; ///< of the result
  std::vector<slice> slices;
  std::uint64_t sequences = 0; ///< how many contributed; the same for all image tensors

  std::size_t bytes() const noexcept;
  std::size_t bytes_of_rows(std::uint64_t rows) const noexcept;
  /// Copies the rows into memory that `meter` counts.
  frame join(const std::shared_ptr<memory_meter> &meter) const;
};

/// The routed experts of a bin: one row for each kept token. Nothing if no sample has any.
/// Errors: bad_value if only some samples have them, a node has not one row per token, or dtype or
/// trailing shape differ; too_large.
result<std::optional<array_join>> join_experts(std::span<const sequence_plan> sequences);

/// The kept tokens of a bin: schema/kept_tokens.hpp.
struct kept_tokens_join {
  array_join counts; ///< one for each kept token; 0 for those of nodes without any
  array_join ids;    ///< those of the kept tokens
};
/// Nothing if no branch of a sample has any. Errors: bad_value if a node has not one count per
/// token or other ids than its counts say; too_large.
result<std::optional<kept_tokens_join>> join_kept_tokens(std::span<const sequence_plan> sequences);

/// The image tensors of a bin, ascending by name. A sample that was cut keeps its first images:
/// that many rows of image_grid_thw, the rows of their patches of every other tensor.
/// Errors: bad_value if names, dtypes or trailing shapes differ or rows are missing; too_large.
result<std::vector<array_join>> join_images(std::span<const sequence_plan> sequences);

} // namespace millrace
