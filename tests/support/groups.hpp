// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "actors/assembler/group_header.hpp"
#include "schema/episode_encoder.hpp"

namespace millrace::test {

/// Tokens that no model sampled; ids count up from `first_id`.
node_data prompt(std::int32_t parent, std::size_t tokens, std::int32_t first_id = 100);
/// A turn of the model: mask as given, logprobs -0.5.
node_data turn(std::int32_t parent, std::vector<std::uint8_t> mask, std::int32_t first_id = 200);

/// An episode of one trace with these nodes, Ok, of group "env/task/group".
frame_data episode_of(const std::string &id, double reward, std::vector<node_data> nodes);
/// Adds another trace.
void add_trace(frame_data &episode, double reward, std::vector<node_data> nodes);

/// Encoded, checked at the door, sealed. Fails the test if that does not work.
sealed_episode sealed_one(frame_data episode);

constexpr std::uint64_t no_cut = 1'000'000'000;

group_members group_of(const std::vector<frame_data> &episodes);
/// The parsed header of a group.
body<wire::GroupHeader> header_of(const group_members &group, std::uint64_t seq_len = no_cut,
                                  const filter_rules &rules = {});
body<wire::GroupHeader> header_of(const std::vector<frame_data> &episodes,
                                  std::uint64_t seq_len = no_cut);

/// Rows of bytes counting up, for experts and image tensors.
array_data array_of(const std::string &name, dtype type, std::vector<std::uint64_t> shape);
array_data grid_of(const std::vector<std::int64_t> &values);

} // namespace millrace::test
