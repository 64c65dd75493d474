// SPDX-License-Identifier: Apache-2.0
#include "actors/assembler/episode_header.hpp"

#include <algorithm>
#include <limits>

#include "actors/assembler/branch_arrays.hpp"
#include "actors/graph/echo.hpp"
#include "schema/limits.hpp"

namespace millrace {

namespace {

bool any_weight_on_mask(const node_view &node, std::span<const float> weights) {
  for (std::size_t i = 0; i < node.mask.size(); ++i)
    if (node.mask[i] != 0 && weights[i] != 0.0F)
      return true;
  return false;
}

std::uint64_t trainable_within(const node_view &node, const node_shape &shape,
                               std::uint64_t tokens) {
  if (tokens >= node.mask.size())
    return shape.trainable;
  return count_true(node.mask.first(static_cast<std::size_t>(tokens)));
}

/// Walks a node's trainable tokens: their advantages, and where rl weighs on them.
/// @param weights absent: those of an earlier branch, or none; zeros
void add_advantages(branch_header &out, const node_view &node,
                    std::optional<std::span<const float>> weights) {
  std::size_t next = 0;
  for (std::size_t i = 0; i < node.mask.size(); ++i) {
    if (node.mask[i] == 0)
      continue;
    const bool zero = !node.advantages || (*node.advantages)[next] == 0.0F;
    ++next;
    const bool weighed = weights && (*weights)[i] != 0.0F;
    (zero ? out.zero_advantage_on_mask : out.nonzero_advantage_on_mask) = true;
    if (weighed)
      (zero ? out.rl_on_zero_advantage : out.rl_on_nonzero_advantage) = true;
  }
}

void add_streams(branch_header &out, const std::vector<node_view> &nodes,
                 const std::vector<node_shape> &shapes, const branch &path) {
  for (auto i : path.nodes) {
    out.advantages |= nodes[i].advantages.has_value();
    out.reference_logprobs |= nodes[i].reference_logprobs.has_value();
  }
  for (std::size_t at = 0; at < path.nodes.size(); ++at) {
    const auto &node = nodes[path.nodes[at]];
    const auto &shape = shapes[path.nodes[at]];
    const bool rl = shape.rl_nonzero && path.rl_off[at] == 0;
    out.rl_nonzero |= rl;
    out.ce_nonzero |= shape.ce_nonzero && path.ce_off[at] == 0;
    out.ref_kl_nonzero |= shape.ref_kl_nonzero && path.ref_kl_off[at] == 0;
    if (path.mask_off[at] != 0)
      continue;
    if (rl && !out.rl_nonzero_on_mask)
      out.rl_nonzero_on_mask = any_weight_on_mask(node, *node.rl_weights);
    if (out.advantages)
      add_advantages(out, node, rl ? node.rl_weights : std::nullopt);
  }
}

std::uint8_t flags_of(const node_view &node) {
  const auto flag = [](bool on, wire::NodeFlag bit) {
    return on ? static_cast<unsigned>(bit) : 0U;
  };
  return static_cast<std::uint8_t>(
      flag(node.sampled, wire::NodeFlag::Sampled) |
      flag(node.advantages.has_value(), wire::NodeFlag::Advantages) |
      flag(node.reference_logprobs.has_value(), wire::NodeFlag::ReferenceLogprobs) |
      flag(node.rl_weights.has_value(), wire::NodeFlag::RlWeights) |
      flag(node.ce_weights.has_value(), wire::NodeFlag::CeWeights) |
      flag(node.ref_kl_weights.has_value(), wire::NodeFlag::RefKlWeights) |
      flag(has_echo_tokens(node), wire::NodeFlag::EchoTokens));
}

/// Index of a role in the table, where it is put if it is new.
result<std::uint8_t> role_index(std::vector<std::string> &roles, std::string_view role) {
  const auto found = std::find(roles.begin(), roles.end(), role);
  const auto index = found - roles.begin();
  if (index > std::numeric_limits<std::uint8_t>::max())
    return fail(errc::too_large, "an episode with more than 256 roles");
  if (found == roles.end())
    roles.emplace_back(role);
  return static_cast<std::uint8_t>(index);
}

status add_nodes(trace_header &out, const std::vector<node_view> &nodes,
                 const std::vector<node_shape> &shapes, std::vector<std::string> &roles) {
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const auto role = role_index(roles, nodes[i].role);
    if (!role)
      return tl::unexpected(role.error());
    out.node_parents.push_back(nodes[i].parent);
    out.node_roles.push_back(*role);
    out.node_flags.push_back(flags_of(nodes[i]));
    out.node_tokens.push_back(shapes[i].tokens);
    out.node_trainable.push_back(shapes[i].trainable);
    out.trainable_tokens += shapes[i].trainable;
    if (!nodes[i].advantages)
      continue;
    for (auto x : *nodes[i].advantages) {
      const bool first = out.advantage_count++ == 0;
      out.advantage_min = first ? x : std::min(out.advantage_min, x);
      out.advantage_max = first ? x : std::max(out.advantage_max, x);
    }
  }
  return {};
}

status add_branches(trace_header &out, const std::vector<node_view> &nodes,
                    const std::vector<node_shape> &shapes, std::uint64_t seq_len) {
  const auto graph = branches_of(shapes);
  if (!graph)
    return tl::unexpected(graph.error());
  // Branches share prefixes, so what they list of images can be many times the episode.
  constexpr std::size_t most_image_values = std::size_t{1} << 22;
  std::size_t image_values = 0;
  for (const auto &path : graph->trainable) {
    auto made = make_branch_header(nodes, shapes, path, seq_len);
    if (!made)
      return with_context(std::move(made).error(), fmt::format("branch with leaf {}", path.leaf));
    image_values += made->image_runs.size() + made->image_grid_thw.size();
    if (image_values > most_image_values)
      return fail(errc::too_large, "its branches list more than {} image positions and sizes",
                  most_image_values);
    out.branches.push_back(std::move(*made));
  }
  return {};
}

/// @param trains the episode is Ok and for training: its nodes must fit each other, its branches
/// count
result<trace_header> make_trace_header(const sealed_episode &episode, std::size_t index,
                                       bool trains, std::uint64_t seq_len,
                                       const filter_rules &rules, std::vector<std::string> &roles) {
  const auto &said = *episode.finish().traces()->Get(static_cast<flatbuffers::uoffset_t>(index));
  trace_header out;
  out.id = text_of(said.id());
  out.agent = text_of(said.agent());
  out.agent_trainable = said.agent_trainable();
  out.ok = said.ok();
  out.reward = said.reward();
  out.output_tokens = said.output_tokens();
  out.total_tokens = said.total_tokens();
  out.turns = said.turns();
  const auto nodes = episode.nodes(index);
  std::vector<node_shape> shapes;
  shapes.reserve(nodes.size());
  for (const auto &node : nodes)
    shapes.push_back(shape_of(node));
  MILLRACE_TRY(add_nodes(out, nodes, shapes, roles));
  if (!trains)
    return out;
  constexpr auto largest = static_cast<double>(std::numeric_limits<float>::max());
  if (!(out.reward >= -largest && out.reward <= largest))
    return fail(errc::bad_value, "reward {} does not fit float32", out.reward);
  MILLRACE_TRY(check_experts(nodes));
  if (!out.ok || !out.agent_trainable || out.trainable_tokens == 0)
    return out;
  out.filters = filter_trace(nodes, rules);
  MILLRACE_TRY(add_branches(out, nodes, shapes, seq_len));
  return out;
}

} // namespace

result<branch_header> make_branch_header(const std::vector<node_view> &nodes,
                                         const std::vector<node_shape> &shapes, const branch &path,
                                         std::uint64_t seq_len) {
  branch_header out;
  out.leaf = path.leaf;
  out.tokens = path.tokens;
  out.trainable = path.trainable;
  add_streams(out, nodes, shapes, path);
  MILLRACE_TRY(add_arrays(out, nodes, path));
  const auto kept = kept_tokens(out, seq_len);
  std::uint64_t position = 0;
  for (std::size_t at = 0; at < path.nodes.size() && position < kept; ++at) {
    const auto &node = nodes[path.nodes[at]];
    if (path.mask_off[at] == 0)
      out.trainable_in_seq_len += trainable_within(node, shapes[path.nodes[at]], kept - position);
    position += node.token_ids.size();
  }
  return out;
}

episode_header make_episode_header(const sealed_episode &episode, std::uint64_t seq_len,
                                   const filter_rules &rules) {
  const auto &head = episode.head();
  episode_header out;
  out.id = episode.id();
  out.attempt = head.attempt();
  out.status = episode.finish().status();
  out.reason = text_of(episode.finish().reason());
  out.cancel_reason = episode.finish().cancel_reason();
  out.eval = head.eval();
  out.first_version = head.first_version();
  out.last_version = head.last_version();
  out.frozen = head.frozen();
  out.bytes = episode.bytes();
  out.tokens = episode.tokens();
  const bool trains = out.status == wire::EpisodeStatus::Ok && !out.eval;
  for (std::size_t i = 0; i < episode.trace_count(); ++i) {
    auto trace = make_trace_header(episode, i, trains, seq_len, rules, out.roles);
    if (trace) {
      out.traces.push_back(std::move(*trace));
      continue;
    }
    if (out.status == wire::EpisodeStatus::Ok) {
      out.status = wire::EpisodeStatus::Rejected;
      out.reason = fmt::format("episode '{}', trace {}: {}", out.id, i, trace.error().message);
    }
    out.traces.clear();
    break;
  }
  return out;
}

} // namespace millrace
