// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "actors/planner/plan_config.hpp"
#include "runtime/dtype.hpp"
#include "runtime/result.hpp"

namespace millrace {

/// What must agree for two arrays to be joined along their first axis.
struct array_signature {
  std::string name; ///< of an image tensor; empty for routed experts
  dtype type = dtype::uint8;
  std::vector<std::uint64_t> dims; ///< without the first; their number counts

  auto operator<=>(const array_signature &) const = default;
};

/// Images of a sample: what a cut and a fit depend on.
struct image_shape {
  std::vector<array_signature> tensors; ///< sorted by name
  /// Runs of tokens with a nonzero type id: (first position, count), ascending, apart.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> runs;
  std::vector<std::array<std::uint64_t, 3>> grid_thw; ///< one for each image
  std::uint64_t patches = 0;                          ///< rows of pixel_values
};

/// One sample as the planner sees it: counts, no tokens.
struct sample_shape {
  std::uint64_t tokens = 0;
  std::optional<array_signature> experts{};
  std::optional<image_shape> images{}; ///< only for a sample with image tensors
};

/// A sample, or its first tokens, in a micro batch.
struct planned_piece {
  std::size_t sample = 0;   ///< index into the samples that were planned
  std::uint32_t tokens = 0; ///< kept, at least 1
  std::uint32_t images = 0; ///< kept; 0: no image tensors, it counts as text

  bool operator==(const planned_piece &) const = default;
};

struct micro_batch_plan {
  std::vector<planned_piece> pieces{}; ///< in joining order, at least one
  std::uint32_t padding = 0;           ///< tokens after the last piece
  bool dummy = false;                  ///< filler: nothing trains, no weight streams
  bool images = false;                 ///< some piece keeps images

  bool operator==(const micro_batch_plan &) const = default;
};

/// A sample that cannot be planned, and why.
struct rejected_sample {
  std::size_t sample;
  std::string reason;
};

/// Every sample is in one micro batch that is no dummy, or dropped, or rejected.
struct step_plan {
  std::vector<std::vector<micro_batch_plan>> ranks; ///< micro batches of each rank, images first
  std::vector<std::size_t> dropped; ///< image samples that the cut leaves nothing of, ascending
  std::vector<rejected_sample> rejected; ///< ascending
};

/// The grid of one step: truncation, stable order, first fit, splitting, padding, dummies,
/// distribution over ranks. Pure: the same shapes and config give the same plan.
/// Source: docs/algorithms.md, "Packing". Errors: bad_config (validate), too_large if costs do not
/// fit 126 bits.
result<step_plan> plan_step(std::span<const sample_shape> samples, const plan_config &config);

/// What must hold before a step ships: as many micro batches on every rank, none empty or over
/// seq_len, one modality at each index, no sample twice. Errors: conflict, with rank and index.
status check_plan(const step_plan &plan, const plan_config &config);

} // namespace millrace
