// SPDX-License-Identifier: Apache-2.0
#include "actors/graph/branches.hpp"

#include <algorithm>

namespace millrace {

namespace {

constexpr std::size_t most_path_nodes = std::size_t{1} << 24;

bool any_nonzero(const std::optional<std::span<const float>> &values) {
  return values && std::any_of(values->begin(), values->end(), [](float x) { return x != 0.0F; });
}

std::vector<std::uint32_t> leaves_of(std::span<const node_shape> nodes) {
  std::vector<std::uint8_t> has_child(nodes.size(), 0);
  for (const auto &node : nodes)
    if (node.parent >= 0)
      has_child[static_cast<std::size_t>(node.parent)] = 1;
  std::vector<std::uint32_t> leaves;
  for (std::uint32_t i = 0; i < nodes.size(); ++i)
    if (has_child[i] == 0)
      leaves.push_back(i);
  return leaves;
}

/// Who has weighed or trained already, over the branches so far.
struct usage {
  explicit usage(std::size_t nodes)
      : mask(nodes, 0), rl(nodes, 0), ce(nodes, 0), ref_kl(nodes, 0) {}
  std::vector<std::uint8_t> mask, rl, ce, ref_kl;
};

branch make_branch(std::span<const node_shape> nodes, const std::vector<std::uint32_t> &path,
                   usage &used) {
  branch out;
  out.leaf = path.back();
  out.nodes = path;
  for (auto i : path) {
    const auto &node = nodes[i];
    out.mask_off.push_back(used.mask[i]);
    out.tokens += node.tokens;
    if (used.mask[i] == 0)
      out.trainable += node.trainable;
    if (node.sampled && node.trainable > 0)
      used.mask[i] = 1;
  }
  return out;
}

/// Weight streams go over the trainable branches only.
void mark_weights(std::span<const node_shape> nodes, branch &b, usage &used) {
  for (auto i : b.nodes) {
    const auto &node = nodes[i];
    b.rl_off.push_back(used.rl[i]);
    b.ce_off.push_back(used.ce[i]);
    b.ref_kl_off.push_back(used.ref_kl[i]);
    used.rl[i] |= node.rl_nonzero;
    used.ce[i] |= node.ce_nonzero;
    used.ref_kl[i] |= node.ref_kl_nonzero;
  }
}

} // namespace

node_shape shape_of(const node_view &node) {
  return {.parent = node.parent,
          .sampled = node.sampled,
          .tokens = static_cast<std::uint32_t>(node.token_ids.size()),
          .trainable = static_cast<std::uint32_t>(count_true(node.mask)),
          .rl_nonzero = any_nonzero(node.rl_weights),
          .ce_nonzero = any_nonzero(node.ce_weights),
          .ref_kl_nonzero = any_nonzero(node.ref_kl_weights)};
}

result<trace_graph> branches_of(std::span<const node_shape> nodes) {
  trace_graph out;
  out.leaves = leaves_of(nodes);
  std::size_t total = 0;
  for (auto leaf : out.leaves) {
    std::vector<std::uint32_t> path;
    for (auto i = static_cast<std::int64_t>(leaf); i >= 0;
         i = nodes[static_cast<std::size_t>(i)].parent) {
      if (++total > most_path_nodes)
        return fail(errc::too_large, "the branches of a trace hold more than {} nodes",
                    most_path_nodes);
      path.push_back(static_cast<std::uint32_t>(i));
    }
    std::reverse(path.begin(), path.end());
    out.branches.push_back(std::move(path));
  }
  usage used(nodes.size());
  for (const auto &path : out.branches) {
    auto b = make_branch(nodes, path, used);
    if (b.trainable == 0)
      continue;
    mark_weights(nodes, b, used);
    out.trainable.push_back(std::move(b));
  }
  return out;
}

result<trace_graph> branches_of(std::span<const node_view> nodes, std::span<const float> echo) {
  std::vector<node_shape> shapes;
  shapes.reserve(nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    shapes.push_back(shape_of(nodes[i]));
    if (!echo.empty() && echo[i] != 0)
      shapes.back().ce_nonzero = true;
  }
  return branches_of(shapes);
}

} // namespace millrace
