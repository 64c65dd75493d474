// SPDX-License-Identifier: Apache-2.0
#include "actors/scorer/reference_request.hpp"

#include <algorithm>
#include <iterator>

#include "actors/graph/branches.hpp"
#include "actors/scorer/reference.hpp"
#include "actors/scorer/verdict.hpp"
#include "runtime/json_out.hpp"
#include "schema/episode.hpp"
#include "schema/limits.hpp"

namespace millrace {

namespace {

/// The eligible traces of one episode.
class prompt_maker {
public:
  prompt_maker(std::vector<reference_prompt> &out, const sealed_episode &episode,
               const wire::EpisodeHeader &header, std::uint32_t index, reference_kind kind)
      : out_(out), episode_(episode), header_(header), index_(index), kind_(kind) {}

  status add_all() const;

private:
  status add_trace(std::uint32_t t) const;
  status add_branch(std::uint32_t t, std::uint32_t b, const std::vector<node_view> &nodes,
                    const branch &path) const;
  status take_hint(reference_prompt &out) const;
  template <class... Args>
  tl::unexpected<error> bad(std::uint32_t trace, fmt::format_string<Args...> format,
                            Args &&...args) const {
    return fail(errc::bad_value, "episode '{}', trace {}: {}", text_of(header_.id()), trace,
                fmt::format(format, std::forward<Args>(args)...));
  }

  std::vector<reference_prompt> &out_;
  const sealed_episode &episode_;
  const wire::EpisodeHeader &header_;
  const std::uint32_t index_;
  const reference_kind kind_;
};

status prompt_maker::add_all() const {
  const auto count = header_.traces() == nullptr ? 0U : header_.traces()->size();
  const auto *results = episode_.finish().traces();
  if (episode_.id() != text_of(header_.id()) || episode_.trace_count() < count ||
      results == nullptr || results->size() < count)
    return fail(errc::conflict, "the header's episode '{}' with {} traces got the bytes of '{}'",
                text_of(header_.id()), count, episode_.id());
  for (std::uint32_t t = 0; t < count; ++t)
    if (const auto &trace = *header_.traces()->Get(t); is_eligible(trace) && lacks_reference(trace))
      MILLRACE_TRY(add_trace(t));
  return {};
}

status prompt_maker::add_trace(std::uint32_t t) const {
  const auto nodes = episode_.nodes(t);
  std::vector<node_shape> shapes;
  shapes.reserve(nodes.size());
  for (const auto &node : nodes)
    shapes.push_back(shape_of(node));
  const auto graph = branches_of(shapes);
  if (!graph)
    return tl::unexpected(graph.error());
  const auto *branches = header_.traces()->Get(t)->branches();
  const auto count = branches == nullptr ? 0U : branches->size();
  if (graph->trainable.size() != count)
    return bad(t, "it has {} trainable branches, its header {}", graph->trainable.size(), count);
  for (std::uint32_t b = 0; b < count; ++b)
    MILLRACE_TRY(add_branch(t, b, nodes, graph->trainable[b]));
  return {};
}

status prompt_maker::add_branch(std::uint32_t t, std::uint32_t b,
                                const std::vector<node_view> &nodes, const branch &path) const {
  reference_prompt prompt{.episode = index_, .trace = t, .branch = b};
  if (kind_ == reference_kind::self_hinted)
    MILLRACE_TRY(take_hint(prompt));
  const auto most = limits::micro_batch_tokens;
  if (path.tokens > most - std::min<std::uint64_t>(most, prompt.tokens.size()))
    return fail(errc::too_large, "episode '{}', trace {}: a branch of {} tokens, at most {}",
                text_of(header_.id()), t, path.tokens, most);
  prompt.tokens.reserve(prompt.tokens.size() + path.tokens);
  const bool first_has_value = !prompt.tokens.empty() || !prompt.hint.empty();
  for (const auto n : path.nodes) {
    const auto &node = nodes[n];
    if (!first_has_value && prompt.tokens.empty() && !node.mask.empty() && node.mask[0] != 0)
      return bad(t,
                 "node {} trains the first token of a branch: nothing comes before it, so a "
                 "teacher has no logprob for it",
                 n);
    prompt.tokens.insert(prompt.tokens.end(), node.token_ids.begin(), node.token_ids.end());
  }
  out_.push_back(std::move(prompt));
  return {};
}

status prompt_maker::take_hint(reference_prompt &out) const {
  const auto &result = *episode_.finish().traces()->Get(out.trace);
  const auto ids = span_of(result.hint_token_ids());
  out.tokens.assign(ids.begin(), ids.end());
  out.hint_tokens = ids.size();
  if (ids.empty())
    out.hint = text_of(result.hint());
  if (ids.empty() && out.hint.empty())
    return bad(out.trace, "it has no hint, and opsd needs one");
  return {};
}

} // namespace

std::vector<std::uint32_t> reference_episodes(const wire::GroupHeader &group) {
  std::vector<std::uint32_t> out;
  const auto count = group.episodes() == nullptr ? 0U : group.episodes()->size();
  for (std::uint32_t e = 0; e < count; ++e) {
    const auto &episode = *group.episodes()->Get(e);
    const auto *traces = episode.traces();
    if (is_scored(episode) && traces != nullptr &&
        std::any_of(traces->begin(), traces->end(),
                    [](const auto *t) { return is_eligible(*t) && lacks_reference(*t); }))
      out.push_back(e);
  }
  return out;
}

result<std::vector<reference_prompt>> reference_prompts(const wire::GroupHeader &group,
                                                        std::span<const sealed_episode> episodes,
                                                        reference_kind kind) {
  const auto wanted = reference_episodes(group);
  if (episodes.size() != wanted.size())
    return fail(errc::conflict, "{} episodes came, {} are wanted", episodes.size(), wanted.size());
  std::vector<reference_prompt> out;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const auto &header = *group.episodes()->Get(wanted[i]);
    MILLRACE_TRY(prompt_maker(out, episodes[i], header, wanted[i], kind).add_all());
  }
  return out;
}

std::vector<float> branch_values(std::span<const float> values, std::uint64_t hint_tokens) {
  MILLRACE_ASSERT(hint_tokens <= values.size(), "a hint of {} tokens in {} values", hint_tokens,
                  values.size());
  const auto branch = values.subspan(static_cast<std::size_t>(hint_tokens));
  return {branch.begin(), branch.end()};
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
