// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "actors/trainer/tensors.hpp"
#include "runtime/dtype.hpp"

namespace millrace {

/// One tensor of a micro batch as a digest or a dump sees it.
struct tensor_item {
  std::string name; ///< "input_ids", ...; image tensors are "mm_kwargs.NAME"
  bool present = true;
  dtype type = dtype::uint8;
  std::vector<std::uint64_t> shape;
  std::span<const std::byte> bytes; ///< little-endian; valid while the tensors live unchanged
};

/// The tensors before and after env_names and padding, in the order of the field list in
/// docs/formats.md, "Content digest". Without image tensors there is one absent item "mm_kwargs";
/// without kept tokens there is no item of theirs.
struct tensor_items {
  std::vector<tensor_item> always;
  std::vector<tensor_item> nullable;
};
tensor_items items_of(const micro_batch_tensors &tensors);

} // namespace millrace
