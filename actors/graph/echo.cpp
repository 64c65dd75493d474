// SPDX-License-Identifier: Apache-2.0
#include "actors/graph/echo.hpp"

#include <algorithm>

namespace millrace {

namespace {

/// Null: every token counts.
const std::uint8_t *content_of(const node_view &node) noexcept {
  return node.is_content.size() == node.token_ids.size() ? node.is_content.data() : nullptr;
}

const std::uint8_t *mask_of(const node_view &node) noexcept {
  return node.echo_mask ? node.echo_mask->data() : nullptr;
}

} // namespace

bool has_echo_tokens(const node_view &node) noexcept {
  const auto *content = content_of(node);
  const auto *mask = mask_of(node);
  for (std::size_t i = 0; i < node.token_ids.size(); ++i)
    if ((content == nullptr || content[i] != 0) && (mask == nullptr || mask[i] != 0))
      return true;
  return false;
}

std::vector<float> echo_weights(std::span<const echo_node> nodes) {
  std::vector<float> out(nodes.size(), 0.0F);
  std::vector<std::uint8_t> below_sampled(nodes.size(), 0);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const auto &node = nodes[i];
    if (node.parent >= 0) {
      const auto parent = static_cast<std::size_t>(node.parent);
      below_sampled[i] = below_sampled[parent] != 0 || nodes[parent].sampled ? 1 : 0;
    }
    if (below_sampled[i] != 0 && !node.sampled && node.has_tokens)
      out[i] = node.alpha;
  }
  return out;
}

std::vector<float> echo_weights(std::span<const node_view> nodes,
                                const std::map<std::string_view, float> &roles) {
  std::vector<echo_node> facts;
  facts.reserve(nodes.size());
  for (const auto &node : nodes) {
    const auto alpha = roles.find(node.role);
    facts.push_back({.parent = node.parent,
                     .sampled = node.sampled,
                     .has_tokens = has_echo_tokens(node),
                     .alpha = alpha == roles.end() ? 0.0F : alpha->second});
  }
  return echo_weights(facts);
}

void raise_to_echo(const node_view &node, float alpha, std::span<float> out) noexcept {
  const auto *content = content_of(node);
  const auto *mask = mask_of(node);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const bool counts =
        (content == nullptr || content[i] != 0) && (mask == nullptr || mask[i] != 0);
    out[i] = std::max(out[i], counts ? alpha : 0.0F);
  }
}

} // namespace millrace
