// SPDX-License-Identifier: Apache-2.0
#include "actors/conform/graph_case.hpp"

#include "actors/conform/case_reader.hpp"

namespace millrace {

namespace {

result<node_data> read_node(const json::value &in) {
  node_data out;
  std::optional<std::int32_t> parent;
  std::optional<json::value> weights;
  std::optional<json::value> experts;
  case_fields fields(in);
  fields.find("parent", parent);
  fields.get("role", out.role);
  fields.get("sampled", out.sampled);
  fields.get("token_ids", out.token_ids);
  fields.get("mask", out.mask);
  fields.get("is_content", out.is_content);
  fields.get("logprobs", out.logprobs);
  fields.find("advantages", out.advantages);
  fields.find("reference_logprobs", out.reference_logprobs);
  fields.find("loss_weights", weights);
  fields.find("routed_experts", experts);
  MILLRACE_TRY(fields.done());
  out.parent = parent.value_or(-1);
  if (out.is_content.size() != out.token_ids.size())
    out.is_content.clear(); // such a list says nothing; the door refuses it
  if (weights) {
    case_fields streams(*weights);
    streams.find("rl", out.rl_weights);
    streams.find("ce", out.ce_weights);
    streams.find("ref_kl", out.ref_kl_weights);
    MILLRACE_TRY(streams.done());
  }
  if (experts) {
    auto array = read_array(*experts);
    if (!array)
      return tl::unexpected(std::move(array).error());
    out.routed_experts = std::move(*array);
  }
  return out;
}

/// A list of lists, one for each branch.
template <class T> status read_lists(const json::value &in, std::vector<std::vector<T>> &out) {
  const auto lists = in.items();
  if (!lists)
    return tl::unexpected(lists.error());
  for (const auto &list : *lists) {
    auto values = list.as<std::vector<T>>();
    if (!values)
      return tl::unexpected(std::move(values).error());
    out.push_back(std::move(*values));
  }
  return {};
}

result<trace_assignment> read_assignment(const json::value &in) {
  trace_assignment out;
  std::optional<json::value> advantages;
  std::optional<json::value> reference;
  case_fields fields(in);
  fields.find("assign_advantages", advantages);
  fields.find("branch_reference_logprobs", reference);
  MILLRACE_TRY(fields.done());
  if (advantages && advantages->type() == json::kind::array) {
    fields.find("assign_advantages", out.advantages);
  } else if (advantages) {
    const auto number = advantages->as<double>();
    if (!number)
      return tl::unexpected(number.error());
    out.advantage = static_cast<float>(*number);
  }
  MILLRACE_TRY(fields.done());
  if (reference)
    MILLRACE_TRY(read_lists(*reference, out.reference_logprobs.emplace()));
  return out;
}

/// Adds a trace's result and nodes to its episode.
status read_trace(const json::value &in, frame_data &episode) {
  trace_result_data trace;
  case_fields fields(in);
  fields.get("id", trace.id);
  fields.get("agent", trace.agent);
  fields.get("agent_trainable", trace.agent_trainable);
  fields.get("ok", trace.ok);
  fields.get("reward", trace.reward);
  MILLRACE_TRY(fields.done());
  const auto list = in.get<json::value>("nodes");
  if (!list)
    return tl::unexpected(list.error());
  const auto items = list->items();
  if (!items)
    return tl::unexpected(items.error());
  for (std::size_t i = 0; i < items->size(); ++i) {
    auto node = read_node((*items)[i]);
    if (!node)
      return tl::unexpected(std::move(node).error());
    node->trace = static_cast<std::uint16_t>(episode.finish->traces.size());
    node->index = static_cast<std::uint32_t>(i);
    episode.nodes.push_back(std::move(*node));
  }
  episode.finish->traces.push_back(std::move(trace));
  return {};
}

status read_episode(const json::value &in, graph_case &out) {
  frame_data episode;
  episode.key = {.run = "", .env = out.env_name, .task = "task", .group = "group"};
  episode.finish.emplace();
  const auto id = in.get<std::string>("id");
  const auto traces = in.get<json::value>("traces");
  if (!id || !traces)
    return tl::unexpected(id ? traces.error() : id.error());
  episode.episode = *id;
  const auto items = traces->items();
  if (!items)
    return tl::unexpected(items.error());
  out.assignments.emplace_back();
  for (const auto &trace : *items) {
    MILLRACE_TRY(read_trace(trace, episode));
    auto assignment = read_assignment(trace);
    if (!assignment)
      return tl::unexpected(std::move(assignment).error());
    out.assignments.back().push_back(std::move(*assignment));
  }
  count_whole_episode(episode);
  out.episodes.push_back(std::move(episode));
  return {};
}

status read_roles(const json::value &in, std::map<std::string, double> &out) {
  const auto roles = in.members();
  if (!roles)
    return tl::unexpected(roles.error());
  for (const auto &[role, value] : *roles) {
    const auto alpha = value.as<double>();
    if (!alpha)
      return tl::unexpected(alpha.error());
    out.emplace(role, *alpha);
  }
  return {};
}

/// Hands the filter masks, which stand under the ids of traces, to their traces.
status read_filters(const json::value &in, graph_case &out) {
  const auto filters = in.members();
  if (!filters)
    return tl::unexpected(filters.error());
  for (const auto &[id, masks] : *filters)
    for (std::size_t e = 0; e < out.episodes.size(); ++e)
      for (std::size_t t = 0; t < out.assignments[e].size(); ++t)
        if (out.episodes[e].finish->traces[t].id == id)
          MILLRACE_TRY(read_lists(masks, out.assignments[e][t].echo_filter.emplace()));
  return {};
}

status read_config(const json::value &in, graph_case &out) {
  std::string loss;
  std::optional<json::value> gate;
  std::optional<json::value> roles;
  case_fields fields(in);
  fields.get("env_name", out.env_name);
  fields.get("temperature", out.env.temperature);
  fields.get("algorithm", out.env.algorithm);
  fields.get("action_loss_type", loss);
  fields.find("gate", gate);
  fields.find("echo_roles", roles);
  MILLRACE_TRY(fields.done());
  if (roles)
    MILLRACE_TRY(read_roles(*roles, out.env.echo.roles));
  out.env.action_loss_type = action_loss::rl;
  if (loss == "ce")
    out.env.action_loss_type = action_loss::ce;
  else if (loss == "ref_kl")
    out.env.action_loss_type = action_loss::ref_kl;
  else if (loss != "rl")
    return in.wrong("unknown action_loss_type '{}'", loss);
  if (!gate)
    return {};
  case_fields bounds(*gate);
  bounds.find("reject_min", out.env.gate.reject_min);
  bounds.find("reject_max", out.env.gate.reject_max);
  return bounds.done();
}

} // namespace

result<graph_case> read_graph_case(const json::value &test) {
  graph_case out;
  const auto config = test.get<json::value>("config");
  const auto group = test.get<json::value>("group");
  if (!config || !group)
    return tl::unexpected(config ? group.error() : config.error());
  MILLRACE_TRY(read_config(*config, out));
  const auto episodes = group->items();
  if (!episodes)
    return tl::unexpected(episodes.error());
  for (const auto &episode : *episodes)
    MILLRACE_TRY(read_episode(episode, out));
  const auto filters = config->find<json::value>("echo_filter_masks", json::nulls::as_absent);
  if (!filters)
    return tl::unexpected(filters.error());
  if (*filters)
    MILLRACE_TRY(read_filters(**filters, out));
  return out;
}

} // namespace millrace
