// SPDX-License-Identifier: Apache-2.0
#include "actors/scorer/reference_request.hpp"

#include <iterator>
#include <limits>
#include <utility>

#include "actors/graph/branches.hpp"
#include "runtime/json_out.hpp"
#include "schema/episode.hpp"
#include "schema/limits.hpp"

namespace millrace {

namespace {

template <class... Args>
tl::unexpected<error> bad(errc code, const sealed_episode &episode, std::uint32_t trace,
                          fmt::format_string<Args...> format, Args &&...args) {
  return fail(code, "episode '{}', trace {}: {}", episode.id(), trace,
              fmt::format(format, std::forward<Args>(args)...));
}

/// Begins a prompt with the hint of its trace.
status take_hint(const sealed_episode &episode, reference_prompt &out) {
  const auto &came = *episode.finish().traces()->Get(out.trace);
  const auto ids = span_of(came.hint_token_ids());
  out.tokens.assign(ids.begin(), ids.end());
  out.hint_tokens = ids.size();
  if (ids.empty())
    out.hint = text_of(came.hint());
  if (ids.empty() && out.hint.empty())
    return bad(errc::bad_value, episode, out.trace, "it has no hint, and opsd needs one");
  return {};
}

status add_branch(const sealed_episode &episode, const std::vector<node_view> &nodes,
                  const branch &path, reference_prompt &out) {
  constexpr std::uint64_t most = limits::micro_batch_tokens;
  if (path.tokens > most || out.tokens.size() > most - path.tokens)
    return bad(errc::too_large, episode, out.trace, "a prompt of {} tokens, at most {} are asked",
               out.tokens.size() + path.tokens, most);
  out.tokens.reserve(out.tokens.size() + path.tokens);
  for (const auto n : path.nodes)
    out.tokens.insert(out.tokens.end(), nodes[n].token_ids.begin(), nodes[n].token_ids.end());
  return {};
}

status add_trace(std::vector<reference_prompt> &out, const wire::EpisodeHeader &header,
                 const sealed_episode &episode, const trace_place &place, reference_kind kind) {
  const auto *results = episode.finish().traces();
  if (episode.id() != text_of(header.id()) || place.trace >= episode.trace_count() ||
      results == nullptr || place.trace >= results->size())
    return fail(errc::conflict, "episode '{}' came for trace {} of episode '{}'", episode.id(),
                place.trace, text_of(header.id()));
  const auto nodes = episode.nodes(place.trace);
  const auto graph = branches_of(nodes, {});
  if (!graph)
    return tl::unexpected(graph.error());
  for (std::uint32_t b = 0; b < graph->trainable.size(); ++b) {
    reference_prompt prompt;
    prompt.episode = place.episode;
    prompt.trace = place.trace;
    prompt.branch = b;
    if (kind == reference_kind::self_hinted)
      MILLRACE_TRY(take_hint(episode, prompt));
    MILLRACE_TRY(add_branch(episode, nodes, graph->trainable[b], prompt));
    out.push_back(std::move(prompt));
  }
  return {};
}

} // namespace

std::vector<std::uint32_t> reference_episodes(const wire::GroupHeader &group) {
  std::vector<std::uint32_t> out;
  for (const auto &place : traces_without_reference(group))
    if (out.empty() || out.back() != place.episode)
      out.push_back(place.episode);
  return out;
}

result<std::vector<reference_prompt>> reference_prompts(const wire::GroupHeader &group,
                                                        std::span<const sealed_episode> episodes,
                                                        reference_kind kind) {
  const auto wanted = reference_episodes(group);
  if (episodes.size() != wanted.size())
    return fail(errc::conflict, "{} episodes came, {} are wanted", episodes.size(), wanted.size());
  std::vector<reference_prompt> out;
  std::size_t at = 0;
  for (const auto &place : traces_without_reference(group)) {
    while (wanted[at] != place.episode)
      ++at;
    MILLRACE_TRY(add_trace(out, *group.episodes()->Get(place.episode), episodes[at], place, kind));
  }
  return out;
}

reference_logprobs reference_of(std::span<const reference_prompt> prompts,
                                std::vector<std::vector<float>> values,
                                std::span<const sealed_episode> episodes) {
  MILLRACE_ASSERT(prompts.size() == values.size(), "{} prompts, {} answers", prompts.size(),
                  values.size());
  reference_logprobs out;
  std::size_t at = 0; // in `episodes`
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    const auto &[episode, trace] = std::pair(prompts[i].episode, prompts[i].trace);
    if (i > 0 && episode != prompts[i - 1].episode)
      ++at;
    if (prompts[i].branch == 0)
      out.traces.push_back(
          {.episode = episode, .trace = trace, .nodes = episodes[at].nodes(trace), .branches = {}});
    out.traces.back().branches.push_back(std::move(values[i]));
  }
  return out;
}

std::vector<float> branch_values(std::span<const float> values, std::uint64_t hint_tokens) {
  MILLRACE_ASSERT(hint_tokens <= values.size(), "a hint of {} tokens in {} values", hint_tokens,
                  values.size());
  const auto branch = values.subspan(static_cast<std::size_t>(hint_tokens));
  std::vector<float> out{branch.begin(), branch.end()};
  if (hint_tokens == 0 && !out.empty())
    out[0] = std::numeric_limits<float>::quiet_NaN();
  return out;
}

std::string completion_body(std::string_view model, std::span<const std::int32_t> tokens) {
  constexpr std::size_t digits = 8;
  std::string out;
  out.reserve(256 + tokens.size() * digits);
  out += '{';
  if (!model.empty())
    out += fmt::format("\"model\":{},", json::dump(json::tree(std::string(model))));
  out += "\"prompt\":[";
  for (std::size_t i = 0; i < tokens.size(); ++i)
    fmt::format_to(std::back_inserter(out), "{}{}", i == 0 ? "" : ",", tokens[i]);
  out += "],\"max_tokens\":1,\"temperature\":1.0,\"prompt_logprobs\":0,\"stream\":false}";
  return out;
}

std::string tokenize_body(std::string_view model, std::string_view text) {
  json::tree out;
  if (!model.empty())
    out["model"] = std::string(model);
  out["prompt"] = std::string(text);
  out["add_special_tokens"] = false;
  return json::dump(out);
}

} // namespace millrace
