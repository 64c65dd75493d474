// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "runtime/result.hpp"

namespace millrace {

/// What a micro batch costs: linear * sum(n) + quadratic * sum(n * n) over the lengths n of its
/// sequences, in exact integers. Config keys: cost.*. Only ratios matter; not both are 0.
struct cost_config {
  /// Work that grows with tokens (matrix products, experts). Range: 0 and up. Default: 1.
  std::int64_t linear = 1;

  /// Work that grows with the square of a sequence's length (attention). Range: 0 and up.
  /// Default: 0. Model-sized values balance ranks better where lengths differ much.
  std::int64_t quadratic = 0;
};

/// The shape of a step's grid. Config keys: seq_len, pad_to_multiple_of, trainer.ranks, cost.*.
struct plan_config {
  /// Unit: tokens. Most that one micro batch holds, padding included; longer samples are cut.
  /// Range: 1 to 2^26. Default: 32,768. More: fewer cuts and micro batches, more device memory.
  std::uint32_t seq_len = 32'768;

  /// Unit: tokens. Micro batches are padded to a multiple of it. Range: 1 to seq_len, which must be
  /// a multiple of it. Default: 1. More suits kernels that want round shapes, and wastes the rest.
  std::uint32_t pad_to_multiple_of = 1;

  /// Data-parallel ranks of the trainer. Range: 1 to 65,536. Default: 1.
  std::uint32_t ranks = 1;

  cost_config cost{};

  /// Key: cost.model. A model's config.json (Hugging Face), from which `cost` is made when the
  /// config is loaded: actors/planner/flops_cost.hpp. Default: none.
  std::filesystem::path cost_model;

  /// All that is broken: ranges, and the rules between the fields.
  std::vector<error> validate() const;
};

} // namespace millrace
