// SPDX-License-Identifier: Apache-2.0
#include "actors/planner/sample_shape.hpp"

#include <algorithm>

namespace millrace {

namespace {

array_signature signature_of(const wire::ArrayShape &array) {
  array_signature out{.name = std::string(text_of(array.name())),
                      .type = static_cast<dtype>(array.dtype()),
                      .dims = {}};
  const auto shape = span_of(array.shape());
  if (!shape.empty())
    out.dims.assign(shape.begin() + 1, shape.end());
  return out;
}

image_shape images_of(const wire::BranchHeader &branch) {
  image_shape out;
  for (const auto *tensor : *branch.tensors()) {
    out.tensors.push_back(signature_of(*tensor));
    const auto shape = span_of(tensor->shape());
    if (out.tensors.back().name == "pixel_values" && !shape.empty())
      out.patches = shape.front();
  }
  std::ranges::sort(out.tensors);
  const auto runs = span_of(branch.image_runs());
  for (std::size_t i = 0; i + 1 < runs.size(); i += 2)
    out.runs.emplace_back(runs[i], runs[i + 1]);
  const auto grid = span_of(branch.image_grid_thw());
  for (std::size_t i = 0; i + 2 < grid.size(); i += 3)
    out.grid_thw.push_back({grid[i], grid[i + 1], grid[i + 2]});
  return out;
}

} // namespace

sample_shape shape_of(const wire::BranchHeader &branch) {
  sample_shape out{.tokens = branch.tokens()};
  if (branch.routed_experts() != nullptr)
    out.experts = signature_of(*branch.routed_experts());
  if (branch.tensors() != nullptr && branch.tensors()->size() > 0)
    out.images = images_of(branch);
  return out;
}

} // namespace millrace
