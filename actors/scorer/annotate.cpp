// SPDX-License-Identifier: Apache-2.0
#include "actors/scorer/annotate.hpp"

#include "actors/assembler/filters.hpp"
#include "actors/scorer/echo.hpp"
#include "actors/scorer/encode_annotations.hpp"
#include "actors/scorer/gate.hpp"
#include "actors/scorer/prune.hpp"
#include "actors/scorer/rae.hpp"
#include "actors/scorer/routing.hpp"
#include "schema/episode.hpp"

namespace millrace {

namespace {

trace_score_input input_of(std::uint32_t episode, const wire::TraceHeader &trace) {
  return {.episode = episode,
          .agent = text_of(trace.agent()),
          .reward = trace.reward(),
          .output_tokens = trace.output_tokens(),
          .total_tokens = trace.total_tokens(),
          .turns = trace.turns(),
          .trainable_tokens = trace.trainable_tokens()};
}

/// Reads the state of a group's key. Errors name the key.
result<agent_baselines> state_of(const wire::GroupHeader &group, const answer_inputs &inputs) {
  auto state = decode_baselines(inputs.state);
  if (!state)
    return with_context(
        std::move(state).error(),
        fmt::format("the state of key '{}'", state_key(text_of(group.key()->env()))));
  return state;
}

/// Gives the traces of an admitted group what the reference policy says of them.
status add_reference(const wire::GroupHeader &group, const answer_inputs &inputs,
                     group_verdict &verdict) {
  static const reference_logprobs nothing;
  auto assigned =
      assign_reference(group, inputs.reference == nullptr ? nothing : *inputs.reference);
  if (!assigned)
    return tl::unexpected(std::move(assigned).error());
  auto next = assigned->begin();
  for (auto &trace : verdict.traces)
    if (next != assigned->end() &&
        next->place == trace_place{trace.score.episode, trace.score.trace})
      trace.reference = std::move((next++)->values);
  return {};
}

result<group_answer> annotate_unnamed(const wire::GroupHeader &group, const env_config &config,
                                      const answer_inputs &inputs) {
  const auto needs = needs_of(config);
  agent_baselines state;
  if (needs == score_needs::state) {
    auto before = state_of(group, inputs);
    if (!before)
      return tl::unexpected(std::move(before).error());
    state = std::move(*before);
  }
  const auto scores = score_group(group, config, state);
  if (!scores)
    return tl::unexpected(scores.error());
  auto verdict = judge_group(group, *scores, config);
  if (verdict.admitted) {
    if (needs == score_needs::reference)
      MILLRACE_TRY(add_reference(group, inputs, verdict));
    MILLRACE_TRY(check_advantages(group, verdict.traces));
    MILLRACE_TRY(check_reference(group, verdict.traces));
  }
  group_answer out{.annotations = encode_annotations(group, verdict, config.algorithm),
                   .after = {inputs.state.begin(), inputs.state.end()}};
  if (needs != score_needs::state)
    out.after.clear();
  else if (!scores->traces.empty())
    out.after = encode_baselines(state);
  return out;
}

/// What a filter drops trains nothing, and stays in the scores: its siblings were compared with it.
void drop_filtered(const wire::GroupHeader &group, std::uint8_t dropping,
                   std::vector<trace_verdict> &traces) {
  for (auto &trace : traces) {
    if ((trace_of(group, trace.score).filters() & dropping) == 0)
      continue;
    for (auto &sample : trace.samples)
      if (sample.kept) {
        sample.kept = false;
        sample.filtered = true;
      }
  }
}

} // namespace

score_needs needs_of(const env_config &config) noexcept {
  const auto *known = find_algorithm(config.algorithm);
  return known == nullptr ? score_needs::nothing : known->needs;
}

std::string state_key(std::string_view env) { return std::string(env); }

result<scored_group> score_group(const wire::GroupHeader &group, const env_config &config,
                                 agent_baselines &state) {
  const auto *known = find_algorithm(config.algorithm);
  if (known == nullptr)
    return fail(errc::bad_config, "algorithm \"{}\" is not known: use one of {}", config.algorithm,
                algorithm_names());
  scored_group scores;
  std::vector<trace_score_input> inputs;
  for_each_eligible(group, [&](const trace_place &place, const wire::TraceHeader &trace) {
    scores.traces.push_back(
        {.episode = place.episode, .trace = place.trace, .advantage = std::nullopt});
    inputs.push_back(input_of(place.episode, trace));
  });
  if (inputs.empty())
    return scores;
  const auto found = known->score(inputs, config, state);
  if (!found)
    return tl::unexpected(found.error());
  MILLRACE_ASSERT(found->advantages.size() == inputs.size(), "{} gave {} advantages for {} traces",
                  config.algorithm, found->advantages.size(), inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i)
    scores.traces[i].advantage = found->advantages[i];
  scores.rl_weight = found->rl_weight;
  return scores;
}

group_verdict judge_group(const wire::GroupHeader &group, const scored_group &scores,
                          const env_config &config) {
  group_verdict out;
  out.temperature = static_cast<float>(config.temperature);
  out.echo = echo_roles_of(config);
  out.as_unit = config.scoring == group_scoring::unit;
  out.admitted = gate_admits(group, scores, config.gate);
  out.traces = route(group, scores, config.loss(), out.echo);
  prune(group, out.traces);
  drop_filtered(group, dropping_filters(config.filter), out.traces);
  return out;
}

result<group_answer> annotate(const body<wire::GroupHeader> &group, const env_config &config,
                              const answer_inputs &inputs) {
  auto answer = annotate_unnamed(*group, config, inputs);
  if (!answer)
    return with_context(std::move(answer).error(), "group " + key_of(*group->key()).text());
  return answer;
}

} // namespace millrace
