// SPDX-License-Identifier: Apache-2.0
#include "actors/packer/bin_sources.hpp"

#include <algorithm>

#include "actors/graph/echo.hpp"

namespace millrace {

namespace {

const wire::TraceAnnotation *annotation_of(const wire::GroupAnnotations &annotations,
                                           const wire::Piece &piece) {
  if (annotations.traces() == nullptr)
    return nullptr;
  for (const auto *trace : *annotations.traces())
    if (trace->episode() == piece.episode() && trace->trace() == piece.trace())
      return trace;
  return nullptr;
}

const wire::SampleAnnotation *sample_of(const wire::TraceAnnotation &trace, std::uint32_t branch) {
  if (trace.samples() == nullptr)
    return nullptr;
  for (const auto *sample : *trace.samples())
    if (sample->branch() == branch)
      return sample;
  return nullptr;
}

/// Gives each trainable node that came without reference logprobs its share of those that a
/// reference policy gave the trace.
status add_reference(std::vector<node_view> &nodes, std::span<const float> values) {
  std::size_t next = 0;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const auto trainable = count_true(nodes[i].mask);
    if (nodes[i].reference_logprobs || trainable == 0)
      continue;
    if (values.size() - next < trainable)
      return fail(errc::bad_value, "{} reference logprobs, which end before node {}", values.size(),
                  i);
    nodes[i].reference_logprobs = values.subspan(next, trainable);
    next += trainable;
  }
  if (next != values.size())
    return fail(errc::bad_value, "{} reference logprobs for {} tokens", values.size(), next);
  return {};
}

result<bin_sources::trace> read_trace(const sealed_episode &episode, std::uint32_t trace,
                                      const wire::GroupAnnotations &group,
                                      const wire::TraceAnnotation &annotation) {
  bin_sources::trace out;
  out.nodes = episode.nodes(trace);
  if (annotation.reference_logprobs() != nullptr)
    MILLRACE_TRY(add_reference(out.nodes, span_of(annotation.reference_logprobs())));
  if (group.echo_roles() != nullptr) {
    std::map<std::string_view, float> roles;
    for (const auto *entry : *group.echo_roles())
      roles.emplace(text_of(entry->role()), entry->alpha());
    out.echo = echo_weights(out.nodes, roles);
  }
  auto graph = branches_of(out.nodes, out.echo);
  if (!graph)
    return tl::unexpected(std::move(graph).error());
  out.graph = std::move(*graph);
  return out;
}

tl::unexpected<error> not_there(const wire::Piece &piece, std::string_view what) {
  return fail(errc::bad_value, "a bin names group {}, episode {}, trace {}, branch {}: no such {}",
              piece.group(), piece.episode(), piece.trace(), piece.branch(), what);
}

result<sample_source> read_piece(bin_sources &out, const wire::Piece &piece,
                                 const fetched_group &group) {
  const auto episode = group.episodes.find(piece.episode());
  if (episode == group.episodes.end())
    return not_there(piece, "episode");
  if (piece.trace() >= episode->second.trace_count())
    return not_there(piece, "trace");
  const auto *annotation = annotation_of(*group.annotations, piece);
  const auto *sample = annotation == nullptr ? nullptr : sample_of(*annotation, piece.branch());
  if (sample == nullptr)
    return not_there(piece, "annotation");
  const std::tuple place{piece.group(), piece.episode(), piece.trace()};
  auto found = out.traces.find(place);
  if (found == out.traces.end()) {
    auto trace = read_trace(episode->second, piece.trace(), *group.annotations, *annotation);
    if (!trace)
      return with_context(
          std::move(trace).error(),
          fmt::format("episode '{}', trace {}", episode->second.id(), piece.trace()));
    found = out.traces.emplace(place, std::move(*trace)).first;
  }
  const auto &trace = found->second;
  if (piece.branch() >= trace.graph.trainable.size())
    return not_there(piece, "branch");

  sample_source source;
  source.nodes = trace.nodes;
  source.echo = trace.echo;
  source.path = &trace.graph.trainable[piece.branch()];
  source.tokens = piece.tokens();
  source.images = piece.images();
  source.advantage_rule = annotation->advantage_rule();
  source.advantage = annotation->advantage();
  source.rl = *sample->rl();
  source.ce = *sample->ce();
  source.ref_kl = *sample->ref_kl();
  source.prune_rl = sample->prune_rl();
  source.temperature = group.annotations->temperature();
  source.env = text_of(group.annotations->key()->env());
  source.origin =
      wire::Origin(group.annotations->ordinal(), piece.episode(), piece.trace(), piece.branch(), 0);
  if (const auto *traces = episode->second.finish().traces();
      traces != nullptr && piece.trace() < traces->size())
    source.reward = static_cast<float>(traces->Get(piece.trace())->reward());
  return source;
}

} // namespace

result<std::vector<std::vector<std::uint32_t>>> episodes_needed(const wire::BinPlan &plan) {
  std::vector<std::vector<std::uint32_t>> out(plan.groups() == nullptr ? 0 : plan.groups()->size());
  for (const auto &piece : span_of(plan.pieces())) {
    if (piece.group() >= out.size())
      return not_there(piece, "group");
    out[piece.group()].push_back(piece.episode());
  }
  for (auto &episodes : out) {
    std::ranges::sort(episodes);
    const auto repeated = std::ranges::unique(episodes);
    episodes.erase(repeated.begin(), repeated.end());
  }
  return out;
}

result<bin_sources> make_bin_sources(const wire::BinPlan &plan,
                                     std::span<const fetched_group> groups) {
  bin_sources out;
  out.plan.step = plan.step();
  out.plan.rank = plan.rank();
  out.plan.index = plan.index();
  out.plan.dummy = plan.dummy();
  out.plan.padding = plan.padding();
  for (const auto &piece : span_of(plan.pieces())) {
    if (piece.group() >= groups.size())
      return not_there(piece, "group");
    auto source = read_piece(out, piece, groups[piece.group()]);
    if (!source)
      return tl::unexpected(std::move(source).error());
    out.plan.samples.push_back(*source);
  }
  return out;
}

} // namespace millrace
