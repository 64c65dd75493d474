// SPDX-License-Identifier: Apache-2.0
#include "actors/conform/graph_group.hpp"

#include <algorithm>
#include <cmath>

#include "actors/assembler/group_header.hpp"
#include "actors/graph/credit.hpp"
#include "actors/scorer/annotate.hpp"
#include "actors/scorer/echo.hpp"
#include "actors/scorer/routing.hpp"

namespace millrace {

namespace {

/// What the door and the assembler do to an episode.
result<sealed_episode> seal(const frame_data &episode) {
  auto parts = encode(episode);
  if (!parts)
    return tl::unexpected(std::move(parts).error());
  auto parsed = episode_frame::parse(std::move(*parts));
  if (!parsed)
    return tl::unexpected(std::move(parsed).error());
  MILLRACE_TRY(check_elements(*parsed, {}));
  return sealed_episode::seal({std::move(*parsed)});
}

result<node_values> advantages_after(const trace_assignment &given,
                                     const std::vector<node_view> &nodes) {
  return given.advantage ? assign_advantages(nodes, *given.advantage)
                         : assign_advantages(nodes, *given.advantages);
}

/// A case has a filter mask for each trainable branch, the program one for each node: what some
/// branch keeps of it.
status assign_filter(std::span<const node_view> nodes, std::span<node_data> into,
                     const std::vector<std::vector<std::uint8_t>> &filter) {
  const auto graph = branches_of(nodes, {});
  if (!graph)
    return tl::unexpected(graph.error());
  if (filter.size() != graph->trainable.size())
    return fail(errc::bad_value, "{} echo filter masks for {} trainable branches", filter.size(),
                graph->trainable.size());
  for (std::size_t i = 0; i < nodes.size(); ++i)
    into[i].echo_mask.emplace(nodes[i].token_ids.size(), std::uint8_t{0});
  for (std::size_t b = 0; b < filter.size(); ++b) {
    const auto &path = graph->trainable[b];
    if (filter[b].size() != path.tokens)
      return fail(errc::bad_value, "an echo filter mask of {} values for {} tokens",
                  filter[b].size(), path.tokens);
    auto next = filter[b].begin();
    for (auto i : path.nodes)
      for (auto &keep : *into[i].echo_mask)
        keep |= *next++;
  }
  return {};
}

/// Puts what a case assigns to one trace into the episode's nodes.
/// @param filtered echo looks at the trace
status assign(frame_data &episode, const sealed_episode &sealed, std::size_t trace,
              const trace_assignment &given, bool filtered) {
  const auto nodes = sealed.nodes(trace);
  const auto first = std::find_if(episode.nodes.begin(), episode.nodes.end(),
                                  [trace](const auto &node) { return node.trace == trace; });
  if (given.echo_filter && filtered)
    MILLRACE_TRY(assign_filter(nodes, {first, nodes.size()}, *given.echo_filter));
  if (given.reference_logprobs) {
    const auto graph = branches_of(nodes, {});
    if (!graph)
      return tl::unexpected(graph.error());
    auto values = assign_reference_logprobs(nodes, *graph, *given.reference_logprobs);
    if (!values)
      return tl::unexpected(std::move(values).error());
    for (std::size_t i = 0; i < nodes.size(); ++i)
      first[static_cast<std::ptrdiff_t>(i)].reference_logprobs = std::move((*values)[i]);
  }
  if (!given.scores())
    return {};
  auto values = advantages_after(given, nodes);
  if (!values)
    return tl::unexpected(std::move(values).error());
  for (std::size_t i = 0; i < nodes.size(); ++i)
    first[static_cast<std::ptrdiff_t>(i)].advantages = std::move((*values)[i]);
  return {};
}

/// Echo looks at the ok traces of trained agents, in an episode of which one is eligible.
bool is_filtered(const frame_data &episode, std::size_t trace) {
  const auto may = [&episode](std::size_t t) {
    return episode.finish->traces[t].ok && episode.finish->traces[t].agent_trainable;
  };
  return may(trace) && std::ranges::any_of(episode.nodes, [&](const node_data &node) {
           return may(node.trace) && count_true(node.mask) > 0;
         });
}

result<std::vector<sealed_episode>> seal_all(const graph_case &input) {
  std::vector<sealed_episode> out;
  for (std::size_t e = 0; e < input.episodes.size(); ++e) {
    auto episode = input.episodes[e];
    auto sealed = seal(episode);
    for (std::size_t t = 0; sealed && t < sealed->trace_count(); ++t)
      MILLRACE_TRY(assign(episode, *sealed, t, input.assignments[e][t], is_filtered(episode, t)));
    if (sealed)
      sealed = seal(episode);
    if (!sealed)
      return tl::unexpected(std::move(sealed).error());
    out.push_back(std::move(*sealed));
  }
  return out;
}

result<body<wire::GroupHeader>> header_of(const graph_case &input,
                                          const std::vector<sealed_episode> &episodes) {
  constexpr std::uint64_t whole = 1U << 31;
  group_members group{.key = key_of(*episodes.front().head().key()),
                      .source = "case",
                      .ordinal = 0,
                      .size = static_cast<std::uint32_t>(input.episodes.size()),
                      .episodes = {}};
  for (const auto &episode : episodes)
    group.episodes.push_back({.data = episode,
                              .id = std::string(episode.id()),
                              .attempt = 0,
                              .status = wire::EpisodeStatus::Ok,
                              .reason = {}});
  auto bytes = make_group_header(group, whole);
  if (!bytes)
    return tl::unexpected(std::move(bytes).error());
  auto header = parse<wire::GroupHeader>(std::move(*bytes));
  if (header)
    for (const auto *episode : *(*header)->episodes())
      if (episode->status() != wire::EpisodeStatus::Ok)
        return fail(errc::bad_value, "{}", text_of(episode->reason()));
  return header;
}

} // namespace

result<processed_group> process(const graph_case &input) {
  auto episodes = seal_all(input);
  if (!episodes)
    return tl::unexpected(std::move(episodes).error());
  auto header = header_of(input, *episodes);
  if (!header)
    return tl::unexpected(std::move(header).error());
  agent_baselines state;
  auto scores = score_group(**header, input.env, state);
  if (!scores)
    return tl::unexpected(std::move(scores).error());
  double scale = 0;
  for (auto &score : scores->traces) {
    scale = std::max(scale, std::abs(trace_of(**header, score).reward()));
    if (input.assignments[score.episode][score.trace].scores())
      score.advantage = std::nullopt; // what was assigned stands in the nodes
  }
  auto routed = route(**header, *scores, input.env.loss(), echo_roles_of(input.env));
  auto verdict = judge_group(**header, *scores, input.env);
  return processed_group{.episodes = std::move(*episodes),
                         .header = std::move(*header),
                         .routed = std::move(routed),
                         .verdict = std::move(verdict),
                         .scale = scale};
}

} // namespace millrace
