// SPDX-License-Identifier: Apache-2.0
#include "actors/conform/packing_sample.hpp"

#include <algorithm>

#include "actors/conform/case_reader.hpp"
#include "schema/limits.hpp"

namespace millrace {

namespace {

/// The rule under which the nodes give this stream. By the rule Nodes a stream without a nonzero
/// weight would be absent.
wire::StreamSpec rule_of(const std::optional<std::vector<float>> &weights) {
  using wire::StreamRule;
  if (!weights)
    return {StreamRule::Absent, 0};
  const bool zeros = std::all_of(weights->begin(), weights->end(), [](float x) { return x == 0; });
  return {zeros ? StreamRule::Zeros : StreamRule::Nodes, 0};
}

status read_arrays(const json::value &in, node_data &out) {
  std::optional<json::value> experts;
  std::optional<json::value> images;
  case_fields fields(in);
  fields.find("routed_experts", experts);
  fields.find("mm_kwargs", images);
  MILLRACE_TRY(fields.done());
  if (experts) {
    auto array = read_array(*experts);
    if (!array)
      return tl::unexpected(std::move(array).error());
    out.routed_experts = std::move(*array);
  }
  if (!images)
    return {};
  const auto members = images->members();
  if (!members)
    return tl::unexpected(members.error());
  for (const auto &[name, value] : *members) {
    auto array = read_array(value);
    if (!array)
      return tl::unexpected(std::move(array).error());
    array->name = name;
    out.tensors.push_back(std::move(*array));
  }
  return {};
}

status check_bytes(const array_data &array) {
  const auto wanted = array_bytes(array.shape, array.type, limits::tensor_bytes);
  if (!wanted || *wanted != array.bytes.size())
    return fail(errc::bad_value, "array '{}' has {} bytes, its shape wants {}", array.name,
                array.bytes.size(), wanted.value_or(0));
  return {};
}

/// What cannot even be sent.
status check_sample(const packing_sample &sample) {
  const auto &node = sample.whole;
  const auto n = node.token_ids.size();
  if (node.routed_experts)
    MILLRACE_TRY(check_bytes(*node.routed_experts));
  for (const auto &tensor : node.tensors)
    MILLRACE_TRY(check_bytes(tensor));
  if (sample.mask.size() != n || sample.temperatures.size() != n)
    return fail(errc::bad_value, "{} token ids, {} mask entries, {} temperatures", n,
                sample.mask.size(), sample.temperatures.size());
  if (std::adjacent_find(sample.temperatures.begin(), sample.temperatures.end(),
                         std::not_equal_to<>()) != sample.temperatures.end())
    return fail(errc::unsupported, "a sample has one temperature, not several");
  return {};
}

/// One episode of one node, through encoder, parser and element checks.
result<episode_frame> through_the_door(const packing_sample &sample) {
  frame_data episode;
  episode.key = {.run = "", .env = sample.env, .task = "case", .group = "case"};
  episode.episode = "sample";
  episode.group_size = 1;
  episode.nodes.push_back(sample.whole);
  auto parts = encode(episode);
  if (!parts)
    return tl::unexpected(std::move(parts).error());
  auto parsed = episode_frame::parse(std::move(*parts));
  if (parsed)
    MILLRACE_TRY(check_elements(*parsed, {}));
  return parsed;
}

template <class T>
std::optional<std::span<const T>> slice(const std::optional<std::span<const T>> &all,
                                        std::size_t at, std::size_t count) {
  return all ? std::optional(all->subspan(at, count)) : std::nullopt;
}

/// Rows [at, at + count) of an array whose bytes are one piece.
array_view slice(const array_view &all, std::size_t at, std::size_t count,
                 std::vector<std::vector<std::uint64_t>> &shapes) {
  auto out = all;
  shapes.emplace_back(all.shape.begin(), all.shape.end())[0] = count;
  out.shape = shapes.back();
  const auto row = all.row_bytes();
  for (auto &piece : out.pieces)
    piece = piece.subspan(at * row, count * row);
  return out;
}

node_view slice(const node_view &all, std::size_t at, std::size_t count,
                std::vector<std::vector<std::uint64_t>> &shapes) {
  node_view out = all;
  out.sampled = true;
  out.token_ids = all.token_ids.subspan(at, count);
  out.mask = all.mask.subspan(at, count);
  out.logprobs = all.logprobs.subspan(at, count);
  out.advantages = slice(all.advantages, at, count);
  out.reference_logprobs = slice(all.reference_logprobs, at, count);
  out.rl_weights = slice(all.rl_weights, at, count);
  out.ce_weights = slice(all.ce_weights, at, count);
  out.ref_kl_weights = slice(all.ref_kl_weights, at, count);
  out.mm_token_type_ids = slice(all.mm_token_type_ids, at, count);
  if (all.routed_experts)
    out.routed_experts = slice(*all.routed_experts, at, count, shapes);
  if (at > 0)
    out.tensors.clear(); // all on the first node
  return out;
}

void add_node(packing_branch &out, const node_view &all, std::size_t at, std::size_t count,
              bool trains) {
  const auto index = static_cast<std::uint32_t>(out.nodes.size());
  out.nodes.push_back(slice(all, at, count, out.shapes));
  out.nodes.back().parent = static_cast<std::int32_t>(index) - 1;
  auto &path = out.path;
  path.leaf = index;
  path.nodes.push_back(index);
  path.mask_off.push_back(trains ? 0 : 1);
  path.rl_off.push_back(0);
  path.ce_off.push_back(0);
  path.ref_kl_off.push_back(0);
  path.tokens += count;
  path.trainable += trains ? count : 0;
}

} // namespace

result<packing_sample> read_packing_sample(const json::value &in) {
  packing_sample out;
  auto &node = out.whole;
  case_fields fields(in);
  fields.get("env_name", out.env);
  fields.get("token_ids", node.token_ids);
  fields.get("mask", out.mask);
  fields.get("logprobs", node.logprobs);
  fields.get("temperatures", out.temperatures);
  fields.find("advantages", node.advantages);
  fields.find("ref_logprobs", node.reference_logprobs);
  fields.find("rl_weights", node.rl_weights);
  fields.find("ce_weights", node.ce_weights);
  fields.find("ref_kl_weights", node.ref_kl_weights);
  std::optional<std::vector<std::int32_t>> type_ids;
  fields.find("mm_token_type_ids", type_ids);
  MILLRACE_TRY(fields.done());
  MILLRACE_TRY(read_arrays(in, node));
  if (type_ids) {
    node.mm_token_type_ids.emplace();
    for (auto id : *type_ids) {
      if (id < 0 || id > 255)
        return in.wrong("mm_token_type_ids holds {}", id);
      node.mm_token_type_ids->push_back(static_cast<std::uint8_t>(id));
    }
  }
  node.mask.assign(node.token_ids.size(), 1);
  out.rl = rule_of(node.rl_weights);
  out.ce = rule_of(node.ce_weights);
  out.ref_kl = rule_of(node.ref_kl_weights);
  return out;
}

result<packing_branch> make_packing_branch(const packing_sample &sample) {
  MILLRACE_TRY(check_sample(sample));
  auto bytes = through_the_door(sample);
  if (!bytes)
    return tl::unexpected(std::move(bytes).error());
  packing_branch out(std::move(*bytes));
  const auto all = out.bytes.node(0);
  const auto &mask = sample.mask;
  std::size_t at = 0;
  do { // at least one node, for a sample without tokens
    const auto from = mask.begin() + static_cast<std::ptrdiff_t>(at);
    const auto end = at == mask.size()
                         ? from
                         : std::find_if(from, mask.end(), [&](auto x) { return x != *from; });
    const auto count = static_cast<std::size_t>(end - from);
    add_node(out, all, at, count, count > 0 && *from != 0);
    at += count;
  } while (at < mask.size());
  return out;
}

} // namespace millrace
