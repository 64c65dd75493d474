// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "schema/episode_encoder.hpp"

namespace millrace {

/// One call of the model: the whole prompt that it saw, and what it sampled.
struct model_turn {
  std::vector<std::int32_t> prompt;
  std::vector<std::int32_t> sampled;
  std::vector<float> logprobs; ///< one for each sampled token
  std::string prompt_role;     ///< who wrote what is new in the prompt: "user", "tool"
};

/// Makes a graph of message nodes out of turns that each give their whole prompt. A turn hangs
/// where its prompt goes on: after the longest path of whole nodes from a root whose tokens the
/// prompt starts with. That is the turn before it, unless the prompt was rendered again with other
/// tokens: then a new branch begins at the last node that still agrees. What is new in the prompt
/// becomes a node that is not sampled; only what a turn sampled is ever trainable.
class turn_graph {
public:
  void add(model_turn turn);

  std::span<const node_data> nodes() const noexcept { return nodes_; }
  std::vector<node_data> take_nodes() { return std::move(nodes_); }

private:
  static constexpr std::int32_t none = -1;

  std::int32_t append(std::int32_t parent, node_data node);
  std::int32_t longest_match(std::span<const std::int32_t> prompt) const;

  std::vector<node_data> nodes_;
  std::vector<std::size_t> ends_; ///< tokens of the path down to each node
};

} // namespace millrace
