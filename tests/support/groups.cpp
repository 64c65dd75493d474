// SPDX-License-Identifier: Apache-2.0
#include "tests/support/groups.hpp"

#include <cstring>
#include <numeric>

#include <boost/test/unit_test.hpp>

namespace millrace::test {

node_data prompt(std::int32_t parent, std::size_t tokens, std::int32_t first_id) {
  node_data out;
  out.parent = parent;
  out.role = "user";
  out.token_ids.resize(tokens);
  std::iota(out.token_ids.begin(), out.token_ids.end(), first_id);
  out.mask.assign(tokens, 0);
  return out;
}

node_data turn(std::int32_t parent, std::vector<std::uint8_t> mask, std::int32_t first_id) {
  auto out = prompt(parent, mask.size(), first_id);
  out.role = "assistant";
  out.sampled = true;
  out.mask = std::move(mask);
  out.logprobs.assign(count_true(out.mask), -0.5F);
  return out;
}

frame_data episode_of(const std::string &id, double reward, std::vector<node_data> nodes) {
  frame_data out;
  out.key = {.run = "run", .env = "env", .task = "task", .group = "group"};
  out.episode = id;
  out.finish.emplace();
  add_trace(out, reward, std::move(nodes));
  return out;
}

void add_trace(frame_data &episode, double reward, std::vector<node_data> nodes) {
  const auto trace = episode.finish->traces.size();
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    nodes[i].trace = static_cast<std::uint16_t>(trace);
    nodes[i].index = static_cast<std::uint32_t>(i);
    episode.nodes.push_back(std::move(nodes[i]));
  }
  trace_result_data result;
  result.id = episode.episode + "-" + std::to_string(trace);
  result.agent = "agent";
  result.reward = reward;
  episode.finish->traces.push_back(result);
}

sealed_episode sealed_one(frame_data episode) {
  count_whole_episode(episode);
  auto parts = encode(episode);
  BOOST_REQUIRE_MESSAGE(parts, parts.error().message);
  auto frame = episode_frame::parse(std::move(*parts));
  BOOST_REQUIRE_MESSAGE(frame, frame.error().message);
  const auto checked = check_elements(*frame, {});
  BOOST_REQUIRE_MESSAGE(checked, checked.error().message);
  auto out = sealed_episode::seal({std::move(*frame)});
  BOOST_REQUIRE_MESSAGE(out, out.error().message);
  return std::move(*out);
}

group_members group_of(const std::vector<frame_data> &episodes) {
  group_members out;
  out.key = {.run = "run", .env = "env", .task = "task", .group = "group"};
  out.source = "source";
  out.ordinal = 7;
  out.size = static_cast<std::uint32_t>(episodes.size());
  for (const auto &episode : episodes)
    out.episodes.push_back({.data = sealed_one(episode),
                            .id = episode.episode,
                            .attempt = 0,
                            .status = wire::EpisodeStatus::Ok,
                            .reason = {}});
  return out;
}

body<wire::GroupHeader> header_of(const group_members &group, std::uint64_t seq_len,
                                  const filter_rules &rules) {
  auto bytes = make_group_header(group, seq_len, rules);
  BOOST_REQUIRE_MESSAGE(bytes, bytes.error().message);
  auto header = parse<wire::GroupHeader>(std::move(*bytes));
  BOOST_REQUIRE_MESSAGE(header, header.error().message);
  return std::move(*header);
}

body<wire::GroupHeader> header_of(const std::vector<frame_data> &episodes, std::uint64_t seq_len) {
  return header_of(group_of(episodes), seq_len);
}

array_data array_of(const std::string &name, dtype type, std::vector<std::uint64_t> shape) {
  std::size_t size = size_of(type);
  for (auto extent : shape)
    size *= extent;
  buffer bytes(size);
  for (std::size_t i = 0; i < size; ++i)
    bytes.data()[i] = static_cast<std::byte>(i & 0x3F);
  return {
      .name = name, .type = type, .shape = std::move(shape), .bytes = std::move(bytes).freeze()};
}

array_data grid_of(const std::vector<std::int64_t> &values) {
  auto out = array_of("image_grid_thw", dtype::int64, {values.size() / 3, 3});
  out.bytes = frame::copy_of(std::as_bytes(std::span(values)));
  return out;
}

} // namespace millrace::test
