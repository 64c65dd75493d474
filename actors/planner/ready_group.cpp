// SPDX-License-Identifier: Apache-2.0
#include "actors/planner/ready_group.hpp"

#include <algorithm>

namespace millrace {

namespace {

array_signature signature_of(const wire::ArrayShape &array) {
  array_signature out;
  out.name = text_of(array.name());
  out.type = static_cast<dtype>(array.dtype());
  const auto shape = span_of(array.shape());
  if (!shape.empty())
    out.dims.assign(shape.begin() + 1, shape.end());
  return out;
}

sample_shape shape_of(const wire::BranchHeader &branch) {
  sample_shape out;
  out.tokens = branch.tokens();
  if (branch.routed_experts() != nullptr)
    out.experts = signature_of(*branch.routed_experts());
  if (branch.tensors() == nullptr || branch.tensors()->size() == 0)
    return out;
  auto &images = out.images.emplace();
  for (const auto *tensor : *branch.tensors()) {
    images.tensors.push_back(signature_of(*tensor));
    const auto shape = span_of(tensor->shape());
    if (text_of(tensor->name()) == "pixel_values" && !shape.empty())
      images.patches = shape.front();
  }
  std::ranges::sort(images.tensors);
  const auto runs = span_of(branch.image_runs());
  for (std::size_t i = 0; i + 1 < runs.size(); i += 2)
    images.runs.emplace_back(runs[i], runs[i + 1]);
  const auto grid = span_of(branch.image_grid_thw());
  for (std::size_t i = 0; i + 2 < grid.size(); i += 3)
    images.grid_thw.push_back({grid[i], grid[i + 1], grid[i + 2]});
  return out;
}

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
  if (annotation.samples() == nullptr)
    return {};
  bool some = false;
  for (const auto *sample : *annotation.samples()) {
    if (trace->branches() == nullptr || sample->branch() >= trace->branches()->size())
      return fail(errc::bad_value, "annotations name branch {} of trace {} of episode {}",
                  sample->branch(), annotation.trace(), annotation.episode());
    if (!admitted || !sample->kept())
      continue;
    const auto &branch = *trace->branches()->Get(sample->branch());
    out.samples.push_back({.episode = annotation.episode(),
                           .trace = annotation.trace(),
                           .branch = sample->branch(),
                           .tokens = branch.tokens(),
                           .trainable_in_seq_len = branch.trainable_in_seq_len()});
    out.shapes.push_back(shape_of(branch));
    out.kept_tokens += std::min(branch.tokens(), seq_len);
    some = true;
  }
  out.kept_traces += some ? 1 : 0;
  return {};
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
  if (table.traces() != nullptr)
    for (const auto *trace : *table.traces())
      MILLRACE_TRY(add_trace(*out, *trace, table.admitted(), seq_len));
  return out;
}

result<ready_group> make_unready_group(frame header, group_end end) {
  auto parsed = parse<wire::GroupHeader>(std::move(header));
  if (!parsed)
    return tl::unexpected(std::move(parsed).error());
  return ready_group{
      .header = std::move(*parsed), .annotations = {}, .end = end, .samples = {}, .shapes = {}};
}

} // namespace millrace
