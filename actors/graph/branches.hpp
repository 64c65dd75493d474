// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/result.hpp"
#include "schema/node.hpp"

namespace millrace {

/// What the shape of a trace's graph depends on. A header has it without tokens.
struct node_shape {
  std::int32_t parent = -1;
  bool sampled = false;
  std::uint32_t tokens = 0;
  std::uint32_t trainable = 0; ///< true mask entries
  bool rl_nonzero = false;     ///< some rl weight that came with the node is nonzero
  bool ce_nonzero = false;
  bool ref_kl_nonzero = false;
};

/// The shape of a node, read from its arrays.
node_shape shape_of(const node_view &node);

/// A root-to-leaf path that trains something: one sample. The `off` vectors run parallel to
/// `nodes`.
struct branch {
  std::uint32_t leaf = 0;
  std::vector<std::uint32_t> nodes; ///< root first
  std::vector<std::uint8_t>
      mask_off; ///< 1: a sampled node that an earlier branch trains; its mask is false here
  std::vector<std::uint8_t> rl_off; ///< 1: its rl weights counted in an earlier sample; zeros here
  std::vector<std::uint8_t> ce_off;
  std::vector<std::uint8_t> ref_kl_off;
  std::uint64_t tokens = 0;
  std::uint64_t trainable = 0; ///< after mask_off
};

struct trace_graph {
  std::vector<std::uint32_t> leaves;                ///< ascending
  std::vector<std::vector<std::uint32_t>> branches; ///< every root-to-leaf path, by leaf
  std::vector<branch> trainable; ///< those that keep a true mask entry, in the same order
};

/// Leaves, branches and which branch trains a shared turn. Source: docs/algorithms.md, "Shared
/// turns train once". Precondition: every parent is -1 or an earlier node. Errors: too_large if the
/// paths together hold more than 2^24 nodes (a hostile comb of forks is quadratic).
result<trace_graph> branches_of(std::span<const node_shape> nodes);

/// The same for nodes whose tokens get ce weights from echo beside those that they came with.
/// @param echo one for each node, 0 for none (echo_weights); empty: no echo.
result<trace_graph> branches_of(std::span<const node_view> nodes, std::span<const float> echo);

} // namespace millrace
