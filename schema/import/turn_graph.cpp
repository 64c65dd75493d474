// SPDX-License-Identifier: Apache-2.0
#include "schema/import/turn_graph.hpp"

#include <algorithm>

namespace millrace {

std::int32_t turn_graph::append(std::int32_t parent, node_data node) {
  node.index = static_cast<std::uint32_t>(nodes_.size());
  node.parent = parent;
  const auto before = parent == none ? 0 : ends_[static_cast<std::size_t>(parent)];
  ends_.push_back(before + node.token_ids.size());
  nodes_.push_back(std::move(node));
  return static_cast<std::int32_t>(nodes_.size() - 1);
}

std::int32_t turn_graph::longest_match(std::span<const std::int32_t> prompt) const {
  std::vector<bool> agrees(nodes_.size());
  std::int32_t best = none;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    const auto &ids = nodes_[i].token_ids;
    const auto parent = nodes_[i].parent;
    if ((parent != none && !agrees[static_cast<std::size_t>(parent)]) || ends_[i] > prompt.size())
      continue;
    const auto from = prompt.subspan(ends_[i] - ids.size(), ids.size());
    agrees[i] = std::equal(ids.begin(), ids.end(), from.begin());
    // Of equally long paths the latest: it goes on where the conversation was.
    if (agrees[i] && (best == none || ends_[i] >= ends_[static_cast<std::size_t>(best)]))
      best = static_cast<std::int32_t>(i);
  }
  return best;
}

void turn_graph::add(model_turn turn) {
  auto at = longest_match(turn.prompt);
  const auto shared = at == none ? 0 : ends_[static_cast<std::size_t>(at)];
  if (shared < turn.prompt.size()) {
    node_data prompt;
    prompt.role = std::move(turn.prompt_role);
    prompt.token_ids.assign(turn.prompt.begin() + static_cast<std::ptrdiff_t>(shared),
                            turn.prompt.end());
    prompt.mask.resize(prompt.token_ids.size());
    at = append(at, std::move(prompt));
  }
  node_data answer;
  answer.role = "assistant";
  answer.sampled = true;
  answer.mask.assign(turn.sampled.size(), 1);
  answer.token_ids = std::move(turn.sampled);
  answer.logprobs = std::move(turn.logprobs);
  append(at, std::move(answer));
}

} // namespace millrace
