// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string_view>
#include <vector>

#include "schema/node.hpp"

namespace millrace {

/// What echo looks at in a node. A header has it without tokens.
struct echo_node {
  std::int32_t parent = -1; ///< an earlier node, or -1
  bool sampled = false;
  bool has_tokens = false; ///< has_echo_tokens()
  float alpha = 0;         ///< of its role; 0: none
};

/// True if echo may train on some token of the node: one of its content (of all its tokens, where
/// is_content is not as long as they are) that echo_mask does not take out.
bool has_echo_tokens(const node_view &node) noexcept;

/// The ce weight that echo gives to such tokens of each node of a trace, 0 for none: nodes that no
/// model sampled, whose role has a weight, below a sampled one. Source: docs/algorithms.md, "echo".
std::vector<float> echo_weights(std::span<const echo_node> nodes);

/// The same from the nodes themselves.
/// @param roles weight of each role that has one
std::vector<float> echo_weights(std::span<const node_view> nodes,
                                const std::map<std::string_view, float> &roles);

/// Raises the weights of a node's tokens to what echo gives them: the elementwise maximum, 0 on
/// tokens that it leaves out.
/// @param out the first tokens of the node
void raise_to_echo(const node_view &node, float alpha, std::span<float> out) noexcept;

} // namespace millrace
