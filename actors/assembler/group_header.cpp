// SPDX-License-Identifier: Apache-2.0
#include "actors/assembler/group_header.hpp"

#include <algorithm>
#include <limits>

#include "schema/limits.hpp"

namespace millrace {

namespace {

using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;

template <class T>
Offset<flatbuffers::Vector<T>> vector_of(FlatBufferBuilder &builder, const std::vector<T> &values) {
  return builder.CreateVector(values.data(), values.size());
}

Offset<wire::ArrayShape> encode(FlatBufferBuilder &builder, const array_shape &array) {
  const auto name = builder.CreateString(array.name);
  return wire::CreateArrayShape(builder, name, static_cast<wire::DType>(array.type),
                                vector_of(builder, array.shape));
}

Offset<wire::BranchHeader> encode(FlatBufferBuilder &builder, const branch_header &branch) {
  const auto experts =
      branch.routed_experts ? encode(builder, *branch.routed_experts) : Offset<wire::ArrayShape>{};
  std::vector<Offset<wire::ArrayShape>> tensors;
  for (const auto &tensor : branch.tensors)
    tensors.push_back(encode(builder, tensor));
  const auto tensors_at = builder.CreateVector(tensors);
  const auto runs = vector_of(builder, branch.image_runs);
  const auto grid = vector_of(builder, branch.image_grid_thw);
  wire::BranchHeaderBuilder out(builder);
  out.add_leaf(branch.leaf);
  out.add_tokens(branch.tokens);
  out.add_trainable(branch.trainable);
  out.add_trainable_in_seq_len(branch.trainable_in_seq_len);
  out.add_rl_nonzero(branch.rl_nonzero);
  out.add_rl_nonzero_on_mask(branch.rl_nonzero_on_mask);
  out.add_ce_nonzero(branch.ce_nonzero);
  out.add_ref_kl_nonzero(branch.ref_kl_nonzero);
  out.add_routed_experts(experts);
  out.add_tensors(tensors_at);
  out.add_image_runs(runs);
  out.add_image_grid_thw(grid);
  out.add_type_ids(branch.type_ids);
  out.add_advantages(branch.advantages);
  out.add_zero_advantage_on_mask(branch.zero_advantage_on_mask);
  out.add_nonzero_advantage_on_mask(branch.nonzero_advantage_on_mask);
  out.add_rl_on_zero_advantage(branch.rl_on_zero_advantage);
  out.add_rl_on_nonzero_advantage(branch.rl_on_nonzero_advantage);
  out.add_reference_logprobs(branch.reference_logprobs);
  return out.Finish();
}

/// @param role_of index in the group's table for each role of the episode
Offset<wire::TraceHeader> encode(FlatBufferBuilder &builder, const trace_header &trace,
                                 const std::vector<std::uint8_t> &role_of) {
  std::vector<Offset<wire::BranchHeader>> branches;
  for (const auto &branch : trace.branches)
    branches.push_back(encode(builder, branch));
  auto roles = trace.node_roles;
  for (auto &role : roles)
    role = role_of[role];
  const auto branches_at = builder.CreateVector(branches);
  const auto id = builder.CreateString(trace.id);
  const auto agent = builder.CreateString(trace.agent);
  const auto parents = vector_of(builder, trace.node_parents);
  const auto roles_at = vector_of(builder, roles);
  const auto flags = vector_of(builder, trace.node_flags);
  const auto tokens = vector_of(builder, trace.node_tokens);
  const auto trainable = vector_of(builder, trace.node_trainable);
  return wire::CreateTraceHeader(builder, id, agent, trace.agent_trainable, trace.ok, trace.reward,
                                 trace.output_tokens, trace.total_tokens, trace.turns,
                                 trace.trainable_tokens, parents, roles_at, flags, tokens,
                                 trainable, branches_at, trace.advantage_count, trace.advantage_min,
                                 trace.advantage_max, trace.filters);
}

Offset<wire::EpisodeHeader> encode(FlatBufferBuilder &builder, const episode_header &episode,
                                   const std::vector<std::uint8_t> &role_of) {
  std::vector<Offset<wire::TraceHeader>> traces;
  for (const auto &trace : episode.traces)
    traces.push_back(encode(builder, trace, role_of));
  const auto traces_at = builder.CreateVector(traces);
  const auto id = builder.CreateString(episode.id);
  const auto reason = builder.CreateString(episode.reason);
  return wire::CreateEpisodeHeader(builder, id, episode.attempt, episode.status, reason,
                                   episode.eval, episode.first_version, episode.last_version,
                                   episode.frozen, episode.bytes, episode.tokens, traces_at,
                                   episode.cancel_reason);
}

/// Upper bounds of an episode's share of the body: without its traces, and with them.
std::size_t least_size(const episode_header &episode) {
  return 1024 + 2 * episode.id.size() + episode.reason.size(); // a new reason names the id
}

std::size_t encoded_size(const episode_header &episode) {
  std::size_t size = least_size(episode);
  for (const auto &role : episode.roles)
    size += 16 + role.size();
  for (const auto &trace : episode.traces) {
    size += 512 + trace.id.size() + trace.agent.size() + trace.node_parents.size() * 16;
    for (const auto &branch : trace.branches) {
      size += 512 + branch.image_runs.size() * 4 + branch.image_grid_thw.size() * 8;
      for (const auto &tensor : branch.tensors)
        size += 256 + tensor.name.size();
    }
  }
  return size;
}

/// Puts the episode's roles into the group's table; nothing if it does not hold them.
std::optional<std::vector<std::uint8_t>> place_roles(std::vector<std::string> &roles,
                                                     const std::vector<std::string> &own) {
  const auto before = roles.size();
  std::vector<std::uint8_t> out;
  for (const auto &role : own) {
    const auto found = std::find(roles.begin(), roles.end(), role);
    const auto index = found - roles.begin();
    if (index > std::numeric_limits<std::uint8_t>::max()) {
      roles.resize(before);
      return std::nullopt;
    }
    if (found == roles.end())
      roles.push_back(role);
    out.push_back(static_cast<std::uint8_t>(index));
  }
  return out;
}

/// What is left of an episode that the header cannot hold.
episode_header without_traces(const episode_header &episode, std::string_view why) {
  auto out = episode;
  out.traces.clear();
  if (out.status == wire::EpisodeStatus::Ok) {
    out.status = wire::EpisodeStatus::Rejected;
    out.reason = fmt::format("episode '{}': {}", out.id, why);
  }
  return out;
}

} // namespace

episode_header make_episode_header(const group_member &member, std::uint64_t seq_len,
                                   const filter_rules &rules) {
  episode_header out;
  if (member.data)
    out = make_episode_header(*member.data, seq_len, rules);
  else
    out.id = member.id;
  if (member.data && member.status == wire::EpisodeStatus::Ok)
    return out;
  MILLRACE_ASSERT(member.status != wire::EpisodeStatus::Ok, "episode '{}' is Ok and has no data",
                  member.id);
  out.attempt = member.data ? out.attempt : member.attempt;
  out.status = member.status;
  out.reason = member.reason;
  for (auto &trace : out.traces) {
    trace.branches.clear();
    trace.filters = 0;
  }
  return out;
}

result<frame> make_group_header(const group_place &place,
                                std::span<const episode_header> episodes) {
  std::size_t size = 4096;
  for (const auto &episode : episodes)
    size += least_size(episode);
  if (size > limits::body_bytes)
    return fail(errc::too_large, "group {}: a header of {} bytes, at most {} are allowed",
                place.key.text(), size, limits::body_bytes);
  FlatBufferBuilder builder;
  std::vector<std::string> roles;
  std::vector<Offset<wire::EpisodeHeader>> all;
  for (const auto &episode : episodes) {
    const auto more = encoded_size(episode) - least_size(episode);
    if (more > limits::body_bytes - size) {
      all.push_back(encode(builder, without_traces(episode, "its group's header is full"), {}));
      continue;
    }
    const auto role_of = place_roles(roles, episode.roles);
    all.push_back(
        role_of
            ? encode(builder, episode, *role_of)
            : encode(builder, without_traces(episode, "its group has more than 256 roles"), {}));
    size += more;
  }
  const auto key = create_key(builder, place.key);
  const auto source = builder.CreateString(place.source);
  const auto roles_at = builder.CreateVectorOfStrings(roles);
  const auto episodes_at = builder.CreateVector(all);
  return finish_body<wire::GroupHeader>(builder,
                                        wire::CreateGroupHeader(builder, key, source, place.ordinal,
                                                                place.size, roles_at, episodes_at));
}

result<frame> make_group_header(const group_members &group, std::uint64_t seq_len,
                                const filter_rules &rules) {
  std::vector<episode_header> episodes;
  for (const auto &member : group.episodes)
    episodes.push_back(make_episode_header(member, seq_len, rules));
  return make_group_header(
      {.key = group.key, .source = group.source, .ordinal = group.ordinal, .size = group.size},
      episodes);
}

} // namespace millrace
