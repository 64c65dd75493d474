// SPDX-License-Identifier: Apache-2.0
#include "actors/planner/ready_group.hpp"

#include "actors/planner/cut.hpp"
#include "actors/planner/sample_shape.hpp"
#include "actors/scorer/verdict.hpp"
#include "schema/episode.hpp"

namespace millrace {

namespace {

/// The trace that an annotation speaks of; null if there is none.
const wire::TraceHeader *trace_of(const wire::GroupHeader &header,
                                  const wire::TraceAnnotation &annotation) {
  const auto *episodes = header.episodes();
  if (episodes == nullptr || annotation.episode() >= episodes->size())
    return nullptr;
  const auto *traces = episodes->Get(annotation.episode())->traces();
  if (traces == nullptr || annotation.trace() >= traces->size())
    return nullptr;
  return traces->Get(annotation.trace());
}

status add_trace(ready_group &out, const wire::TraceAnnotation &annotation, bool admitted,
                 std::uint64_t seq_len) {
  const auto *trace = trace_of(*out.header, annotation);
  if (trace == nullptr)
    return fail(errc::bad_value, "annotations name trace {} of episode {}, which is not there",
                annotation.trace(), annotation.episode());
  const auto given = annotation.samples() == nullptr ? 0 : annotation.samples()->size();
  const auto wanted = trace->branches() == nullptr ? 0 : trace->branches()->size();
  if (given != wanted)
    return fail(errc::bad_value,
                "annotations have {} samples for the {} branches of trace {} of "
                "episode {}",
                given, wanted, annotation.trace(), annotation.episode());
  bool some = false;
  for (flatbuffers::uoffset_t i = 0; i < given; ++i) {
    const auto *sample = annotation.samples()->Get(i);
    if (sample->branch() != i)
      return fail(errc::bad_value, "annotations name branch {} of trace {} of episode {} for {}",
                  sample->branch(), annotation.trace(), annotation.episode(), i);
    if (!admitted || !sample->kept())
      continue;
    const auto &branch = *trace->branches()->Get(sample->branch());
    out.samples.push_back({.episode = annotation.episode(),
                           .trace = annotation.trace(),
                           .branch = sample->branch(),
                           .tokens = branch.tokens(),
                           .trainable_in_seq_len = branch.trainable_in_seq_len(),
                           .counted = std::min(branch.tokens(), seq_len)});
    out.shapes.push_back(shape_of(branch));
    out.kept_tokens += std::min(branch.tokens(), seq_len);
    some = true;
  }
  out.kept_traces += some ? 1 : 0;
  return {};
}

/// An answer speaks of this group and of each of its eligible traces, in their order.
status check_answer(const wire::GroupHeader &header, const wire::GroupAnnotations &answer) {
  const auto algorithm = text_of(answer.algorithm());
  if (key_of(*answer.key()) != key_of(*header.key()) || answer.ordinal() != header.ordinal())
    return fail(errc::conflict, "algorithm {} answers for group {} ({}) in place of {} ({})",
                algorithm, key_of(*answer.key()).text(), answer.ordinal(),
                key_of(*header.key()).text(), header.ordinal());
  std::vector<trace_place> wanted;
  for_each_eligible(header, [&wanted](const trace_place &place, const wire::TraceHeader &) {
    wanted.push_back(place);
  });
  const auto given = answer.traces() == nullptr ? 0 : answer.traces()->size();
  if (given != wanted.size())
    return fail(errc::conflict, "algorithm {} answers for {} traces, group {} has {} to be scored",
                algorithm, given, key_of(*header.key()).text(), wanted.size());
  for (flatbuffers::uoffset_t i = 0; i < given; ++i) {
    const auto &one = *answer.traces()->Get(i);
    if (wanted[i] != trace_place{one.episode(), one.trace()})
      return fail(errc::conflict,
                  "algorithm {} answers for trace {} of episode {} in place of trace {} of episode "
                  "{} of group {}",
                  algorithm, one.trace(), one.episode(), wanted[i].trace, wanted[i].episode,
                  key_of(*header.key()).text());
  }
  return {};
}

/// A group that is scored as a unit goes to no step if a sample of it cannot be planned. That is
/// known before it counts for a step: a step that is cut anew is the same.
void end_broken_unit(ready_group &out, std::uint64_t seq_len) {
  for (std::size_t i = 0; i < out.samples.size(); ++i) {
    const auto left = cut(out.shapes[i], static_cast<std::uint32_t>(seq_len));
    if (left)
      continue;
    out.samples[i].outcome = sample_record::fate::rejected;
    if (out.why.empty())
      out.why =
          fmt::format("scored as a unit, and a sample was rejected: {}", left.error().message);
    out.end = group_end::dropped;
    out.kept_traces = out.kept_tokens = 0;
  }
}

} // namespace

result<ready_group> make_ready_group(frame header, frame annotations, std::uint64_t seq_len) {
  auto out = make_unready_group(std::move(header), group_end::settled);
  if (!out)
    return out;
  auto parsed = parse<wire::GroupAnnotations>(std::move(annotations));
  if (!parsed)
    return tl::unexpected(std::move(parsed).error());
  out->annotations = std::move(*parsed);
  const auto &table = **out->annotations;
  MILLRACE_TRY(check_answer(*out->header, table));
  if (table.traces() != nullptr)
    for (const auto *trace : *table.traces())
      MILLRACE_TRY(add_trace(*out, *trace, table.admitted(), seq_len));
  if (table.as_unit())
    end_broken_unit(*out, seq_len);
  return out;
}

result<ready_group> make_unready_group(frame header, group_end end) {
  auto parsed = parse<wire::GroupHeader>(std::move(header));
  if (!parsed)
    return tl::unexpected(std::move(parsed).error());
  return ready_group{.header = std::move(*parsed),
                     .annotations = {},
                     .end = end,
                     .why = {},
                     .samples = {},
                     .shapes = {}};
}

} // namespace millrace
