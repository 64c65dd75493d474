// SPDX-License-Identifier: Apache-2.0
#include "actors/scorer/encode_annotations.hpp"

#include "schema/episode.hpp"

namespace millrace {

namespace {

using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;

Offset<wire::TraceAnnotation> encode(FlatBufferBuilder &builder, const trace_verdict &trace) {
  std::vector<Offset<wire::SampleAnnotation>> samples;
  for (const auto &sample : trace.samples)
    samples.push_back(wire::CreateSampleAnnotation(builder, sample.branch, sample.kept, &sample.rl,
                                                   &sample.ce, &sample.ref_kl, sample.prune_rl,
                                                   sample.filtered));
  const auto samples_at = builder.CreateVector(samples);
  const auto reference_at = trace.reference.empty() ? Offset<flatbuffers::Vector<float>>{}
                                                    : builder.CreateVector(trace.reference);
  return wire::CreateTraceAnnotation(
      builder, trace.score.episode, trace.score.trace,
      trace.score.advantage ? wire::AdvantageRule::Constant : wire::AdvantageRule::Nodes,
      trace.score.advantage.value_or(0.0F), samples_at, reference_at);
}

Offset<flatbuffers::Vector<Offset<wire::EchoRole>>> encode(FlatBufferBuilder &builder,
                                                           const std::vector<echo_role> &roles) {
  if (roles.empty())
    return {};
  std::vector<Offset<wire::EchoRole>> out;
  for (const auto &entry : roles)
    out.push_back(wire::CreateEchoRole(builder, builder.CreateString(entry.role), entry.alpha));
  return builder.CreateVector(out);
}

} // namespace

frame encode_annotations(const wire::GroupHeader &group, const group_verdict &verdict,
                         std::string_view algorithm) {
  FlatBufferBuilder builder;
  std::vector<Offset<wire::TraceAnnotation>> traces;
  for (const auto &trace : verdict.traces)
    traces.push_back(encode(builder, trace));
  const auto traces_at = builder.CreateVector(traces);
  const auto echo_at = encode(builder, verdict.echo);
  const auto key = create_key(builder, key_of(*group.key()));
  const auto source = text_of(group.source());
  const auto source_at = builder.CreateString(source.data(), source.size());
  const auto algorithm_at = builder.CreateString(algorithm.data(), algorithm.size());
  return finish_body<wire::GroupAnnotations>(
      builder, wire::CreateGroupAnnotations(builder, key, source_at, group.ordinal(), algorithm_at,
                                            verdict.admitted, traces_at, verdict.temperature,
                                            echo_at, verdict.as_unit));
}

} // namespace millrace
