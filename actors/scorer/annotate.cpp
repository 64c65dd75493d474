// SPDX-License-Identifier: Apache-2.0
#include "actors/scorer/annotate.hpp"

#include "actors/scorer/algorithm.hpp"
#include "actors/scorer/gate.hpp"
#include "actors/scorer/prune.hpp"
#include "actors/scorer/routing.hpp"
#include "schema/episode.hpp"

namespace millrace {

namespace {

using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;

/// Fills `inputs` and the places of `scores`, one for each eligible trace.
void collect(const wire::GroupHeader &group, std::vector<trace_score_input> &inputs,
             scored_group &scores) {
  if (group.episodes() == nullptr)
    return;
  for (std::uint32_t e = 0; e < group.episodes()->size(); ++e) {
    const auto &episode = *group.episodes()->Get(e);
    if (!is_scored(episode) || episode.traces() == nullptr)
      continue;
    for (std::uint32_t t = 0; t < episode.traces()->size(); ++t) {
      const auto &trace = *episode.traces()->Get(t);
      if (!is_eligible(trace))
        continue;
      scores.traces.push_back({.episode = e, .trace = t, .advantage = std::nullopt});
      inputs.push_back({.episode = e,
                        .agent = text_of(trace.agent()),
                        .reward = trace.reward(),
                        .output_tokens = trace.output_tokens(),
                        .total_tokens = trace.total_tokens(),
                        .turns = trace.turns(),
                        .trainable_tokens = trace.trainable_tokens()});
    }
  }
}

Offset<wire::TraceAnnotation> encode(FlatBufferBuilder &builder, const trace_verdict &trace) {
  std::vector<Offset<wire::SampleAnnotation>> samples;
  for (const auto &sample : trace.samples)
    samples.push_back(wire::CreateSampleAnnotation(builder, sample.branch, sample.kept, &sample.rl,
                                                   &sample.ce, &sample.ref_kl, sample.prune_rl));
  const auto samples_at = builder.CreateVector(samples);
  return wire::CreateTraceAnnotation(builder, trace.score.episode, trace.score.trace,
                                     trace.score.advantage ? wire::AdvantageRule::Constant
                                                           : wire::AdvantageRule::Nodes,
                                     trace.score.advantage.value_or(0.0F), samples_at);
}

} // namespace

result<scored_group> score_group(const wire::GroupHeader &group, const env_config &config) {
  const auto algorithm = find_algorithm(config.algorithm);
  if (algorithm == nullptr)
    return fail(errc::bad_config, "algorithm \"{}\" is not known: use one of {}", config.algorithm,
                algorithm_names());
  scored_group scores;
  std::vector<trace_score_input> inputs;
  collect(group, inputs, scores);
  if (inputs.empty())
    return scores;
  const auto found = algorithm(inputs, config);
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
  out.admitted = gate_admits(group, scores, config.gate);
  out.traces = route(group, scores, config.action_loss_type);
  prune(group, out.traces);
  return out;
}

frame encode_annotations(const wire::GroupHeader &group, const group_verdict &verdict,
                         std::string_view algorithm) {
  FlatBufferBuilder builder;
  std::vector<Offset<wire::TraceAnnotation>> traces;
  for (const auto &trace : verdict.traces)
    traces.push_back(encode(builder, trace));
  const auto traces_at = builder.CreateVector(traces);
  const auto key = create_key(builder, key_of(*group.key()));
  const auto source = text_of(group.source());
  const auto source_at = builder.CreateString(source.data(), source.size());
  const auto algorithm_at = builder.CreateString(algorithm.data(), algorithm.size());
  return finish_body<wire::GroupAnnotations>(
      builder, wire::CreateGroupAnnotations(builder, key, source_at, group.ordinal(), algorithm_at,
                                            verdict.admitted, traces_at, verdict.temperature));
}

result<frame> annotate(const body<wire::GroupHeader> &group, const env_config &config) {
  const auto named = [&group](error why) {
    return with_context(std::move(why), "group " + key_of(*group->key()).text());
  };
  auto scores = score_group(*group, config);
  if (!scores)
    return named(std::move(scores).error());
  const auto verdict = judge_group(*group, *scores, config);
  if (verdict.admitted)
    if (auto found = check_advantages(*group, verdict.traces); !found)
      return named(std::move(found).error());
  return encode_annotations(*group, verdict, config.algorithm);
}

} // namespace millrace
