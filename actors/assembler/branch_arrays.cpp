// SPDX-License-Identifier: Apache-2.0
#include "actors/assembler/branch_arrays.hpp"

#include <algorithm>
#include <limits>

#include "schema/image_grid.hpp"

#include "actors/planner/cut.hpp"

namespace millrace {

namespace {

/// "int16 rows of 2 x 4".
std::string rows_text(dtype type, std::span<const std::uint64_t> shape) {
  std::string out(name_of(type));
  out += " rows of ";
  for (std::size_t i = 1; i < shape.size(); ++i)
    out += (i > 1 ? " x " : "") + std::to_string(shape[i]);
  return shape.size() > 1 ? out : out + "1";
}

bool same_rows(dtype type, std::span<const std::uint64_t> shape, const array_view &array) {
  return type == array.type && std::ranges::equal(shape.subspan(1), array.shape.subspan(1));
}

status join(array_shape &into, const array_view &array, std::uint32_t node) {
  if (!same_rows(into.type, into.shape, array))
    return fail(errc::bad_value, "node {}: '{}' has {}, on a branch where it has {}", node,
                array.name, rows_text(array.type, array.shape), rows_text(into.type, into.shape));
  if (__builtin_add_overflow(into.shape[0], array.rows(), &into.shape[0]))
    return fail(errc::too_large, "node {}: too many rows of '{}'", node, array.name);
  return {};
}

/// Copies the rows of an image grid and adds their patches to `patches`.
status add_grid(branch_header &out, const array_view &grid, std::uint32_t node,
                std::uint64_t &patches) {
  constexpr std::uint64_t most_patches = std::uint64_t{1} << 40;
  constexpr std::int64_t most_side = 1 << 20;
  const auto rows = read_image_grid(grid);
  if (!rows)
    return with_context(rows.error(), fmt::format("node {}", node));
  for (const auto &row : *rows) {
    std::uint64_t product = 1;
    for (auto side : row) {
      if (side < 0 || side > most_side)
        return fail(errc::bad_value, "node {}: {} holds {}", node, image_grid_name, side);
      product *= static_cast<std::uint64_t>(side); // at most 2^60
      out.image_grid_thw.push_back(static_cast<std::uint64_t>(side));
    }
    patches += product;
    if (patches > most_patches)
      return fail(errc::too_large, "node {}: {} counts {} patches, at most {} are allowed", node,
                  image_grid_name, patches, most_patches);
  }
  return {};
}

status add_tensors(branch_header &out, const node_view &node, std::uint32_t index,
                   std::uint64_t &patches) {
  for (std::size_t i = 0; i < node.tensors.size(); ++i) {
    const auto &tensor = node.tensors[i];
    for (std::size_t j = 0; j < i; ++j)
      if (node.tensors[j].name == tensor.name)
        return fail(errc::bad_value, "node {}: two tensors are named '{}'", index, tensor.name);
    const auto at = std::ranges::lower_bound(out.tensors, tensor.name, {}, &array_shape::name);
    if (at != out.tensors.end() && at->name == tensor.name)
      MILLRACE_TRY(join(*at, tensor, index));
    else
      out.tensors.insert(at, {.name = std::string(tensor.name),
                              .type = tensor.type,
                              .shape = {tensor.shape.begin(), tensor.shape.end()}});
    if (tensor.name == image_grid_name)
      MILLRACE_TRY(add_grid(out, tensor, index, patches));
  }
  return {};
}

void add_runs(branch_header &out, std::span<const std::uint8_t> type_ids, std::uint32_t position) {
  auto &runs = out.image_runs;
  for (std::size_t i = 0; i < type_ids.size(); ++i) {
    if (type_ids[i] == 0)
      continue;
    const auto at = position + static_cast<std::uint32_t>(i);
    if (!runs.empty() && runs[runs.size() - 2] + runs.back() == at) {
      ++runs.back();
      continue;
    }
    runs.push_back(at);
    runs.push_back(1);
  }
}

void add_experts(branch_header &out, const std::vector<node_view> &nodes, const branch &path) {
  const array_view *first = nullptr;
  for (auto i : path.nodes) {
    if (nodes[i].token_ids.empty())
      continue;
    if (!nodes[i].routed_experts)
      return;
    if (first == nullptr)
      first = &*nodes[i].routed_experts;
  }
  if (first == nullptr)
    return;
  out.routed_experts = {
      .name = {}, .type = first->type, .shape = {first->shape.begin(), first->shape.end()}};
  out.routed_experts->shape[0] = path.tokens;
}

} // namespace

status add_arrays(branch_header &out, const std::vector<node_view> &nodes, const branch &path) {
  if (path.tokens > std::numeric_limits<std::uint32_t>::max())
    return fail(errc::too_large, "{} tokens do not fit a sample", path.tokens);
  add_experts(out, nodes, path);
  std::uint64_t patches = 0;
  std::uint32_t position = 0;
  for (auto i : path.nodes) {
    const auto &node = nodes[i];
    MILLRACE_TRY(add_tensors(out, node, i, patches));
    if (node.mm_token_type_ids) {
      out.type_ids = true;
      add_runs(out, *node.mm_token_type_ids, position);
    }
    position += static_cast<std::uint32_t>(node.token_ids.size());
  }
  if (!out.tensors.empty() && !out.type_ids)
    return fail(errc::bad_value, "it has image tensors ('{}') and no mm_token_type_ids",
                out.tensors.front().name);
  return {};
}

std::uint64_t kept_tokens(const branch_header &branch, std::uint64_t seq_len) {
  if (branch.tokens <= seq_len)
    return branch.tokens;
  if (branch.tensors.empty())
    return seq_len;
  sample_shape sample{.tokens = branch.tokens, .experts = std::nullopt, .images = image_shape{}};
  for (const auto &tensor : branch.tensors)
    if (tensor.name == "pixel_values")
      sample.images->patches = tensor.shape.front();
  for (std::size_t i = 0; i + 1 < branch.image_runs.size(); i += 2)
    sample.images->runs.emplace_back(branch.image_runs[i], branch.image_runs[i + 1]);
  const auto &grid = branch.image_grid_thw;
  for (std::size_t i = 0; i + 2 < grid.size(); i += 3)
    sample.images->grid_thw.push_back({grid[i], grid[i + 1], grid[i + 2]});
  const auto found = cut(sample, static_cast<std::uint32_t>(seq_len)); // below tokens: fits
  return found ? found->tokens : seq_len;
}

status check_experts(const std::vector<node_view> &nodes) {
  // For each node the experts that its branch has had so far: its own, or those of its parent.
  std::vector<const array_view *> seen(nodes.size(), nullptr);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const auto &node = nodes[i];
    if (node.parent >= 0)
      seen[i] = seen[static_cast<std::size_t>(node.parent)];
    if (!node.routed_experts || node.token_ids.empty())
      continue;
    const auto &mine = *node.routed_experts;
    if (seen[i] == nullptr)
      seen[i] = &mine;
    else if (!same_rows(seen[i]->type, seen[i]->shape, mine))
      return fail(errc::bad_value, "node {}: routed_experts has {}, on a branch where it has {}", i,
                  rows_text(mine.type, mine.shape), rows_text(seen[i]->type, seen[i]->shape));
  }
  return {};
}

} // namespace millrace
