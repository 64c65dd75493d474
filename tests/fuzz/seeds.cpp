// SPDX-License-Identifier: Apache-2.0
// Writes first inputs for the fuzzers of bodies into a folder: valid bodies, so that libFuzzer does
// not begin from nothing. To be run again when the schema changes: seeds tests/fuzz/corpus/body
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>

#include "actors/assembler/group_header.hpp"
#include "schema/episode_encoder.hpp"
#include "schema/sealed_episode.hpp"

using namespace millrace;

namespace {

array_data experts(std::uint64_t tokens) {
  array_data array;
  array.shape = {tokens, 1, 2};
  array.bytes = frame::copy_of(std::vector<std::byte>(tokens * 2));
  return array;
}

node_data prompt() {
  node_data node;
  node.role = "user";
  node.token_ids = {1, 2};
  node.mask = {0, 0};
  return node;
}

node_data answer() {
  node_data node;
  node.index = 1;
  node.parent = 0;
  node.role = "assistant";
  node.sampled = true;
  node.token_ids = {3, 4, 5};
  node.mask = {1, 1, 0};
  node.logprobs = {-0.5F, -1.5F};
  node.advantages = {0.25F, 0.25F};
  node.rl_weights = {1.0F, 0.5F, 0.0F};
  return node;
}

frame_data small_episode() {
  frame_data data;
  data.key = {"run", "env", "task", "group"};
  data.episode = "e";
  data.group_size = 1;
  data.nodes = {prompt(), answer()};
  data.finish.emplace();
  data.finish->traces.resize(1);
  data.finish->traces[0].id = "t";
  data.finish->traces[0].agent = "a";
  data.finish->traces[0].reward = 1.0;
  count_whole_episode(data);
  return data;
}

/// An input as body_fuzz.cpp reads it.
bool write(const std::string &folder, const std::string &name, const message &parts) {
  std::string bytes{'\0', static_cast<char>(parts.size() - 1)};
  const auto append = [&](const frame &part) {
    bytes.append(reinterpret_cast<const char *>(part.data()), part.size());
  };
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const auto size = static_cast<std::uint32_t>(parts[i].size());
    bytes.append(reinterpret_cast<const char *>(&size), sizeof size);
    append(parts[i]);
  }
  append(parts[0]);
  std::ofstream(folder + "/" + name, std::ios::binary) << bytes;
  return std::ifstream(folder + "/" + name).good();
}

} // namespace

int main(int argc, char **argv) {
  if (argc != 2)
    return 2;
  auto data = small_episode();
  const auto plain = encode(data);
  data.nodes[0].routed_experts = experts(2);
  data.nodes[1].routed_experts = experts(3);
  const auto arrays = encode(data);
  if (!plain || !arrays)
    return 1;
  const auto parsed = episode_frame::parse(*arrays);
  if (!parsed)
    return 1;
  const auto sealed = sealed_episode::seal({*parsed});
  if (!sealed)
    return 1;
  group_members group;
  group.key = data.key;
  group.source = "s";
  group.size = 2;
  group.episodes.resize(2);
  group.episodes[0].data = *sealed;
  group.episodes[0].id = "e";
  group.episodes[1].id = "f";
  group.episodes[1].status = wire::EpisodeStatus::Errored;
  const auto header = make_group_header(group, 4);
  const std::string folder = argv[1];
  return header && write(folder, "frame", *plain) && write(folder, "frame_with_experts", *arrays) &&
                 write(folder, "sealed", sealed->parts()) && write(folder, "header", {*header})
             ? 0
             : 1;
}
