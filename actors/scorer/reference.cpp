// SPDX-License-Identifier: Apache-2.0
#include "actors/scorer/reference.hpp"

#include <algorithm>
#include <cmath>

#include "actors/graph/credit.hpp"

namespace millrace {

namespace {

bool has_reference(const wire::TraceHeader &trace, flatbuffers::uoffset_t node) {
  return (trace.node_flags()->Get(node) &
          static_cast<std::uint8_t>(wire::NodeFlag::ReferenceLogprobs)) != 0;
}

/// The nodes are those that the header was made from.
status check_nodes(const wire::TraceHeader &trace, const std::vector<node_view> &nodes) {
  const auto tokens = span_of(trace.node_tokens());
  if (nodes.size() != tokens.size())
    return fail(errc::bad_value, "{} nodes, its header has {}", nodes.size(), tokens.size());
  for (flatbuffers::uoffset_t i = 0; i < tokens.size(); ++i) {
    const auto trainable = count_true(nodes[i].mask);
    if (nodes[i].token_ids.size() != tokens[i] || trainable != trace.node_trainable()->Get(i) ||
        nodes[i].reference_logprobs.has_value() != has_reference(trace, i))
      return fail(errc::bad_value,
                  "node {} has {} tokens, {} of them trainable; its header says {} and {}", i,
                  nodes[i].token_ids.size(), trainable, tokens[i], trace.node_trainable()->Get(i));
  }
  return {};
}

/// Each value that the node takes is a number.
status check_values(std::uint32_t node, std::span<const float> values) {
  for (std::size_t i = 0; i < values.size(); ++i)
    if (!std::isfinite(values[i]))
      return fail(errc::bad_value, "node {}: the reference logprob of its trainable token {} is {}",
                  node, i, values[i]);
  return {};
}

result<std::vector<float>> values_of(const wire::TraceHeader &header,
                                     const trace_reference &reference) {
  MILLRACE_TRY(check_nodes(header, reference.nodes));
  const auto graph = branches_of(reference.nodes, {});
  if (!graph)
    return tl::unexpected(graph.error());
  const auto assigned = assign_reference_logprobs(reference.nodes, *graph, reference.branches);
  if (!assigned)
    return tl::unexpected(assigned.error());
  std::vector<float> out;
  for (std::uint32_t i = 0; i < reference.nodes.size(); ++i) {
    if (reference.nodes[i].reference_logprobs || header.node_trainable()->Get(i) == 0)
      continue;
    const auto &mine = (*assigned)[i];
    MILLRACE_ASSERT(mine.has_value(), "node {} is trainable and on no trainable branch", i);
    MILLRACE_TRY(check_values(i, *mine));
    out.insert(out.end(), mine->begin(), mine->end());
  }
  return out;
}

} // namespace

bool lacks_reference(const wire::TraceHeader &trace) noexcept {
  const auto trainable = span_of(trace.node_trainable());
  for (flatbuffers::uoffset_t i = 0; i < trainable.size(); ++i)
    if (trainable[i] > 0 && !has_reference(trace, i))
      return true;
  return false;
}

std::vector<trace_place> traces_without_reference(const wire::GroupHeader &group) {
  std::vector<trace_place> out;
  for_each_eligible(group, [&out](const trace_place &place, const wire::TraceHeader &trace) {
    if (lacks_reference(trace))
      out.push_back(place);
  });
  return out;
}

result<std::vector<assigned_reference>> assign_reference(const wire::GroupHeader &group,
                                                         const reference_logprobs &reference) {
  const auto wanted = traces_without_reference(group);
  if (wanted.size() != reference.traces.size())
    return fail(errc::bad_value, "the reference policy answers for {} traces, {} were asked for",
                reference.traces.size(), wanted.size());
  std::vector<assigned_reference> out;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const auto &given = reference.traces[i];
    const auto &episode = *group.episodes()->Get(wanted[i].episode);
    if (wanted[i] != trace_place{given.episode, given.trace})
      return fail(errc::bad_value,
                  "answer {} of the reference policy is for trace {} of episode {}, asked for was "
                  "trace {} of episode {}",
                  i, given.trace, given.episode, wanted[i].trace, wanted[i].episode);
    auto values = values_of(*episode.traces()->Get(given.trace), given);
    if (!values)
      return with_context(
          std::move(values).error(),
          fmt::format("episode '{}', trace {}", text_of(episode.id()), given.trace));
    out.push_back({.place = wanted[i], .values = std::move(*values)});
  }
  return out;
}

} // namespace millrace
