// SPDX-License-Identifier: Apache-2.0
#include "actors/graph/credit.hpp"

namespace millrace {

namespace {

std::optional<std::vector<float>> copy_of(const std::optional<std::span<const float>> &values) {
  if (!values)
    return std::nullopt;
  return std::vector<float>(values->begin(), values->end());
}

/// True mask entries over all nodes. Errors: bad_value for a mask of another length than its
/// tokens.
result<std::size_t> count_trainable(std::span<const node_view> nodes) {
  std::size_t total = 0;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const auto trainable = count_true(nodes[i].mask);
    if (trainable > 0 && nodes[i].mask.size() != nodes[i].token_ids.size())
      return fail(errc::bad_value, "node {}: mask has {} values for {} token ids", i,
                  nodes[i].mask.size(), nodes[i].token_ids.size());
    total += trainable;
  }
  return total;
}

} // namespace

result<node_values> assign_advantages(std::span<const node_view> nodes, float value) {
  const auto total = count_trainable(nodes);
  if (!total)
    return tl::unexpected(total.error());
  return assign_advantages(nodes, std::vector<float>(*total, value));
}

result<node_values> assign_advantages(std::span<const node_view> nodes,
                                      std::span<const float> values) {
  const auto total = count_trainable(nodes);
  if (!total)
    return tl::unexpected(total.error());
  if (*total != values.size())
    return fail(errc::bad_value, "{} advantages for {} trainable tokens", values.size(), *total);
  node_values out;
  std::size_t next = 0;
  for (const auto &node : nodes) {
    const auto trainable = count_true(node.mask);
    if (trainable == 0) {
      out.push_back(copy_of(node.advantages));
      continue;
    }
    const auto mine = values.subspan(next, trainable);
    out.emplace_back(std::vector<float>(mine.begin(), mine.end()));
    next += trainable;
  }
  return out;
}

result<node_values> assign_reference_logprobs(std::span<const node_view> nodes,
                                              const trace_graph &graph,
                                              std::span<const std::vector<float>> branches) {
  if (branches.size() != graph.trainable.size())
    return fail(errc::bad_value, "{} lists of reference logprobs for {} trainable branches",
                branches.size(), graph.trainable.size());
  if (const auto total = count_trainable(nodes); !total)
    return tl::unexpected(total.error());
  node_values out;
  for (const auto &node : nodes)
    out.push_back(copy_of(node.reference_logprobs));
  for (std::size_t b = 0; b < branches.size(); ++b) {
    const auto &path = graph.trainable[b];
    if (branches[b].size() != path.tokens)
      return fail(errc::bad_value, "branch with leaf {}: {} reference logprobs for {} tokens",
                  path.leaf, branches[b].size(), path.tokens);
    std::size_t position = 0;
    for (auto i : path.nodes) {
      const auto &mask = nodes[i].mask;
      if (!out[i] && count_true(mask) > 0) {
        out[i].emplace();
        for (std::size_t t = 0; t < mask.size(); ++t)
          if (mask[t] != 0)
            out[i]->push_back(branches[b][position + t]);
      }
      position += nodes[i].token_ids.size();
    }
  }
  return out;
}

std::optional<double> scalar_advantage(const node_values &advantages) {
  bool any = false;
  std::size_t nonzero = 0;
  double sum = 0;
  for (const auto &node : advantages) {
    if (!node)
      continue;
    for (auto x : *node) {
      any = true;
      nonzero += x != 0 ? 1U : 0U;
      sum += static_cast<double>(x);
    }
  }
  if (!any)
    return std::nullopt;
  return nonzero == 0 ? 0.0 : sum / static_cast<double>(nonzero);
}

} // namespace millrace
