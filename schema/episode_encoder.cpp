// SPDX-License-Identifier: Apache-2.0
#include "schema/episode_encoder.hpp"

#include <algorithm>

#include "schema/limits.hpp"

namespace millrace {

namespace {

using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;

template <class T> std::size_t bytes_of(const std::vector<T> &values) {
  return values.size() * sizeof(T);
}
template <class T> std::size_t bytes_of(const std::optional<std::vector<T>> &values) {
  return values ? bytes_of(*values) : 0;
}

/// An upper bound of what a node adds to the FlatBuffer.
std::size_t encoded_size(const node_data &node) {
  constexpr std::size_t fixed = 1024; // table, vector lengths, alignment
  auto size = fixed + node.role.size() + bytes_of(node.token_ids) + bytes_of(node.mask) +
              bytes_of(node.is_content) + bytes_of(node.logprobs) + bytes_of(node.advantages) +
              bytes_of(node.reference_logprobs) + bytes_of(node.rl_weights) +
              bytes_of(node.ce_weights) + bytes_of(node.ref_kl_weights) +
              bytes_of(node.mm_token_type_ids) + bytes_of(node.echo_mask);
  for (const auto &tensor : node.tensors)
    size += 512 + tensor.name.size();
  return size;
}

/// An upper bound of what the frame itself and its end add.
std::size_t encoded_size(const frame_data &frame) {
  auto size = std::size_t{4096} + frame.episode.size() + frame.key.run.size() +
              frame.key.env.size() + frame.key.task.size() + frame.key.group.size();
  for (const auto &node : frame.nodes)
    size += encoded_size(node);
  if (frame.finish) {
    size += frame.finish->reason.size();
    for (const auto &trace : frame.finish->traces)
      size += 320 + trace.id.size() + trace.agent.size() + bytes_of(trace.hint_token_ids) +
              trace.hint.size();
  }
  return size;
}

template <class T>
Offset<flatbuffers::Vector<T>> create(FlatBufferBuilder &builder, const std::vector<T> &values) {
  return builder.CreateVector(values.data(), values.size());
}

template <class T>
Offset<flatbuffers::Vector<T>> create(FlatBufferBuilder &builder,
                                      const std::optional<std::vector<T>> &values) {
  return values ? create(builder, *values) : Offset<flatbuffers::Vector<T>>{};
}

Offset<wire::Array> create(FlatBufferBuilder &builder, message &parts, const array_data &array) {
  return add_array(builder, parts, array.name, array.type, array.shape, array.bytes);
}

Offset<wire::Node> create(FlatBufferBuilder &builder, message &parts, const node_data &node,
                          std::uint8_t role) {
  const auto token_ids = create(builder, node.token_ids);
  const auto mask = create(builder, node.mask);
  const auto is_content = create(builder, node.is_content);
  const auto logprobs = create(builder, node.logprobs);
  const auto advantages = create(builder, node.advantages);
  const auto reference_logprobs = create(builder, node.reference_logprobs);
  const auto rl = create(builder, node.rl_weights);
  const auto ce = create(builder, node.ce_weights);
  const auto ref_kl = create(builder, node.ref_kl_weights);
  const auto type_ids = create(builder, node.mm_token_type_ids);
  const auto optional_array = [&](const std::optional<array_data> &array) {
    return array ? create(builder, parts, *array) : Offset<wire::Array>{};
  };
  const auto experts = optional_array(node.routed_experts);
  const auto kept_counts = optional_array(node.kept_counts);
  const auto kept_ids = optional_array(node.kept_ids);
  std::vector<Offset<wire::Array>> tensors;
  for (const auto &tensor : node.tensors)
    tensors.push_back(create(builder, parts, tensor));
  const auto tensors_at = tensors.empty() ? Offset<flatbuffers::Vector<Offset<wire::Array>>>{}
                                          : builder.CreateVector(tensors);
  const auto echo_mask = create(builder, node.echo_mask);
  return wire::CreateNode(builder, node.trace, node.index, node.parent, role, node.sampled,
                          token_ids, mask, is_content, logprobs, advantages, reference_logprobs, rl,
                          ce, ref_kl, type_ids, experts, tensors_at, kept_counts, kept_ids,
                          echo_mask);
}

Offset<wire::EpisodeEnd> create(FlatBufferBuilder &builder, const finish_data &finish) {
  std::vector<Offset<wire::TraceResult>> traces;
  for (const auto &trace : finish.traces) {
    const auto id = builder.CreateString(trace.id);
    const auto agent = builder.CreateString(trace.agent);
    const auto hint_ids = trace.hint_token_ids.empty() ? Offset<flatbuffers::Vector<std::int32_t>>{}
                                                       : create(builder, trace.hint_token_ids);
    const auto hint =
        trace.hint.empty() ? Offset<flatbuffers::String>{} : builder.CreateString(trace.hint);
    traces.push_back(wire::CreateTraceResult(builder, id, agent, trace.agent_trainable, trace.ok,
                                             trace.reward, trace.output_tokens, trace.total_tokens,
                                             trace.turns, hint_ids, hint));
  }
  const auto reason = builder.CreateString(finish.reason);
  const auto traces_at = builder.CreateVector(traces);
  return wire::CreateEpisodeEnd(builder, finish.status, reason, finish.frames, finish.nodes,
                                finish.tokens, traces_at, finish.cancel_reason);
}

} // namespace

void count_whole_episode(frame_data &episode) {
  MILLRACE_ASSERT(episode.finish, "episode '{}' does not end in this frame", episode.episode);
  auto &finish = *episode.finish;
  finish.frames = 1;
  finish.nodes = static_cast<std::uint32_t>(episode.nodes.size());
  finish.tokens = 0;
  for (auto &trace : finish.traces)
    trace.output_tokens = trace.total_tokens = trace.turns = 0;
  for (const auto &node : episode.nodes) {
    finish.tokens += node.token_ids.size();
    if (node.trace >= finish.traces.size())
      continue;
    auto &trace = finish.traces[node.trace];
    trace.total_tokens += node.token_ids.size();
    if (!node.sampled)
      continue;
    ++trace.turns;
    trace.output_tokens +=
        static_cast<std::uint64_t>(std::count(node.mask.begin(), node.mask.end(), std::uint8_t{1}));
  }
}

result<message> encode(const frame_data &frame) {
  const auto size = encoded_size(frame);
  if (size > limits::body_bytes)
    return fail(errc::too_large, "episode '{}': a frame of {} bytes, at most {} are allowed",
                frame.episode, size, limits::body_bytes);

  std::vector<std::string> roles;
  std::vector<std::uint8_t> role_of;
  for (const auto &node : frame.nodes) {
    const auto found = std::find(roles.begin(), roles.end(), node.role);
    role_of.push_back(static_cast<std::uint8_t>(found - roles.begin()));
    if (found != roles.end())
      continue;
    if (roles.size() == 255)
      return fail(errc::bad_argument, "episode '{}' has more than 255 roles", frame.episode);
    roles.push_back(node.role);
  }

  message parts(1);
  FlatBufferBuilder builder(size);
  std::vector<Offset<wire::Node>> nodes;
  nodes.reserve(frame.nodes.size());
  for (std::size_t i = 0; i < frame.nodes.size(); ++i)
    nodes.push_back(create(builder, parts, frame.nodes[i], role_of[i]));
  const auto nodes_at = builder.CreateVector(nodes);
  const auto roles_at = builder.CreateVectorOfStrings(roles);
  const auto key = create_key(builder, frame.key);
  const auto episode = builder.CreateString(frame.episode);
  const auto finish = frame.finish ? create(builder, *frame.finish) : Offset<wire::EpisodeEnd>{};
  const auto root = wire::CreateEpisodeFrame(
      builder, key, episode, frame.attempt, frame.frame, frame.group_size, frame.eval,
      frame.first_version, frame.last_version, frame.frozen, roles_at, nodes_at, finish);
  parts[0] = finish_body<wire::EpisodeFrame>(builder, root);
  if (parts.size() > limits::parts)
    return fail(errc::too_large, "episode '{}': a frame of {} parts, at most {} are allowed",
                frame.episode, parts.size(), limits::parts);
  return parts;
}

} // namespace millrace
