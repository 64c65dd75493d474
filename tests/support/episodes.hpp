// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "schema/episode_encoder.hpp"
#include "schema/sealed_episode.hpp"

namespace millrace::test {

template <class T> frame bytes_of(const std::vector<T> &values) {
  return frame::copy_of(std::as_bytes(std::span(values)));
}

/// A node of n tokens (first, first + 1, ...): a prompt whose mask is false, or a model turn whose
/// mask is true and whose logprobs are -0.5.
inline node_data some_node(std::uint32_t index, std::string role, std::uint32_t n,
                           std::int32_t first = 100) {
  node_data node;
  node.index = index;
  node.parent = static_cast<std::int32_t>(index) - 1;
  node.role = std::move(role);
  node.sampled = node.role == "assistant";
  node.token_ids.resize(n);
  std::iota(node.token_ids.begin(), node.token_ids.end(), first);
  node.mask.assign(n, node.sampled ? 1 : 0);
  if (node.sampled)
    node.logprobs.assign(n, -0.5F);
  return node;
}

/// Routed experts of n tokens, `layers` by `top_k`, uint8.
inline array_data some_experts(std::uint32_t n, std::uint32_t layers = 2, std::uint32_t top_k = 2) {
  std::vector<std::uint8_t> values(std::size_t{n} * layers * top_k);
  std::iota(values.begin(), values.end(), std::uint8_t{0});
  return {"", dtype::uint8, {n, layers, top_k}, bytes_of(values)};
}

inline group_key some_key(std::string env = "math", std::string group = "g0") {
  return {"run-1", std::move(env), "7", std::move(group)};
}

/// An episode of one frame: a prompt of 3 tokens and an answer of 5, reward 1.
inline frame_data some_episode(std::string id = "e0", group_key key = some_key()) {
  frame_data out;
  out.key = std::move(key);
  out.episode = std::move(id);
  out.group_size = 2;
  out.nodes = {some_node(0, "user", 3), some_node(1, "assistant", 5)};
  out.finish.emplace();
  out.finish->traces.push_back({.id = "t0", .agent = "solver", .reward = 1.0});
  count_whole_episode(out);
  return out;
}

/// The same in two frames: the prompt, then the answer and the end.
inline std::vector<frame_data> some_episode_in_two(std::string id = "e0",
                                                   group_key key = some_key()) {
  auto whole = some_episode(std::move(id), std::move(key));
  auto first = whole;
  first.nodes.pop_back();
  first.finish.reset();
  whole.nodes.erase(whole.nodes.begin());
  whole.frame = 1;
  whole.finish->frames = 2;
  return {first, whole};
}

inline episode_frame parsed(const frame_data &data) {
  return episode_frame::parse(encode(data).value()).value();
}

inline sealed_episode sealed(const std::vector<frame_data> &frames) {
  std::vector<episode_frame> parsed_frames;
  for (const auto &data : frames)
    parsed_frames.push_back(parsed(data));
  return sealed_episode::seal(std::move(parsed_frames)).value();
}

} // namespace millrace::test
