// SPDX-License-Identifier: Apache-2.0
#include "schema/sealed_episode.hpp"

#include <cstring>

#include "schema/limits.hpp"

namespace millrace {

namespace {

constexpr std::size_t extent_alignment = 16;

std::size_t align_up(std::size_t n) {
  return (n + extent_alignment - 1) / extent_alignment * extent_alignment;
}

bool same_key(const wire::GroupKey &a, const wire::GroupKey &b) {
  return text_of(a.run()) == text_of(b.run()) && text_of(a.env()) == text_of(b.env()) &&
         text_of(a.task()) == text_of(b.task()) && text_of(a.group()) == text_of(b.group());
}

/// The frames are numbered from 0 without gaps, belong to one attempt at one episode, and only the
/// last one ends it.
status check_sequence(const std::vector<episode_frame> &frames) {
  if (frames.empty())
    return fail(errc::bad_value, "an episode without frames");
  const auto &head = frames.front().table();
  const auto id = text_of(head.episode());
  for (std::size_t i = 0; i < frames.size(); ++i) {
    const auto &table = frames[i].table();
    if (table.frame() != i)
      return fail(errc::bad_value, "episode '{}': frame {} stands where frame {} should", id,
                  table.frame(), i);
    if (text_of(table.episode()) != id || table.attempt() != head.attempt() ||
        !same_key(*table.key(), *head.key()))
      return fail(errc::bad_value, "episode '{}': frame {} belongs to episode '{}', attempt {}", id,
                  i, text_of(table.episode()), table.attempt());
    const bool last = i + 1 == frames.size();
    if ((table.finish() != nullptr) != last)
      return fail(errc::bad_value, "episode '{}': frame {} of {} {} a finish", id, i, frames.size(),
                  last ? "lacks" : "has");
  }
  return {};
}

result<message> read_extents(const wire::SealedFrame &frame, const message &parts) {
  const auto extents = span_of(frame.extents());
  if (extents.empty() || extents.size() > limits::parts)
    return fail(errc::bad_format, "a sealed frame of {} parts", extents.size());
  message out;
  out.reserve(extents.size());
  for (const auto &extent : extents) {
    if (extent.part() == 0 || extent.part() >= parts.size())
      return fail(errc::bad_format, "a sealed episode names part {} of {}", extent.part(),
                  parts.size());
    const auto &part = parts[extent.part()];
    if (extent.offset() % extent_alignment != 0 || extent.offset() > part.size() ||
        extent.size() > part.size() - extent.offset())
      return fail(errc::bad_format, "a sealed episode names bytes {} + {} of a part of {}",
                  extent.offset(), extent.size(), part.size());
    out.push_back(part.sub(extent.offset(), extent.size()));
  }
  return out;
}

/// Copies the small frames into one slab and says where each frame lies.
message lay_out(std::vector<episode_frame> &frames, const std::shared_ptr<memory_meter> &meter) {
  std::size_t slab_size = 0;
  for (const auto &frame : frames)
    if (frame.bytes() < limits::seal_copy_below)
      for (const auto &part : frame.parts())
        slab_size += align_up(part.size());

  message parts(1);
  std::optional<buffer> slab;
  if (slab_size > 0) {
    slab.emplace(slab_size, meter);
    parts.emplace_back();
  }
  std::size_t at = 0;
  flatbuffers::FlatBufferBuilder builder;
  std::vector<flatbuffers::Offset<wire::SealedFrame>> index;
  for (const auto &frame : frames) {
    const bool small = frame.bytes() < limits::seal_copy_below;
    std::vector<wire::Extent> extents;
    for (const auto &part : frame.parts()) {
      if (!small) {
        extents.emplace_back(static_cast<std::uint32_t>(parts.size()), 0, part.size());
        parts.push_back(part);
        continue;
      }
      extents.emplace_back(1, at, part.size());
      if (!part.empty())
        std::memcpy(slab->data() + at, part.data(), part.size());
      std::memset(slab->data() + at + part.size(), 0, align_up(part.size()) - part.size());
      at += align_up(part.size());
    }
    index.push_back(wire::CreateSealedFrame(
        builder, builder.CreateVectorOfStructs(extents.data(), extents.size())));
  }
  if (slab) {
    if (meter)
      meter->copied.fetch_add(slab_size, std::memory_order_relaxed);
    parts[1] = std::move(*slab).freeze();
  }
  const auto root = wire::CreateSealedIndex(builder, builder.CreateVector(index));
  parts[0] = finish_body<wire::SealedIndex>(builder, root);
  return parts;
}

} // namespace

result<sealed_episode> sealed_episode::seal(std::vector<episode_frame> frames,
                                            const std::shared_ptr<memory_meter> &meter) {
  MILLRACE_TRY(check_sequence(frames));
  return parse(lay_out(frames, meter), meter);
}

result<sealed_episode> sealed_episode::parse(message parts,
                                             const std::shared_ptr<memory_meter> &meter) {
  if (parts.size() < 2 || parts.size() > limits::parts)
    return fail(errc::bad_format, "a sealed episode of {} parts", parts.size());
  auto index = millrace::parse<wire::SealedIndex>(parts.front(), meter);
  if (!index)
    return tl::unexpected(std::move(index).error());
  sealed_episode out;
  std::uint64_t reached = 0;
  std::uint64_t present = 0;
  for (const auto &part : parts)
    present += part.size();
  for (const auto *entry : *(*index)->frames()) {
    auto frame_parts = read_extents(*entry, parts);
    if (!frame_parts)
      return tl::unexpected(std::move(frame_parts).error());
    for (const auto &part : *frame_parts)
      reached += part.size();
    if (reached > present)
      return fail(errc::bad_format, "the frames of a sealed episode overlap");
    auto one = episode_frame::parse(std::move(*frame_parts), meter);
    if (!one)
      return tl::unexpected(std::move(one).error());
    out.frames_.push_back(std::move(*one));
  }
  out.parts_ = std::move(parts);
  MILLRACE_TRY(check_sequence(out.frames_));
  MILLRACE_TRY(out.index_nodes());
  return out;
}

status sealed_episode::index_nodes() {
  const auto &end = finish();
  const auto id = this->id();
  const std::size_t traces = end.traces() == nullptr ? 0 : end.traces()->size();
  if (traces > limits::traces_per_episode)
    return fail(errc::too_large, "episode '{}' has {} traces", id, traces);
  traces_.resize(traces);
  std::uint64_t nodes = 0;
  std::uint64_t tokens = 0;
  for (std::uint32_t f = 0; f < frames_.size(); ++f)
    for (std::uint32_t i = 0; i < frames_[f].node_count(); ++i) {
      const auto &node = *frames_[f].table().nodes()->Get(i);
      if (node.trace() >= traces_.size())
        return fail(errc::bad_value, "episode '{}': a node of trace {}, finish lists {} traces", id,
                    node.trace(), traces_.size());
      auto &trace = traces_[node.trace()];
      if (node.index() != trace.size())
        return fail(errc::bad_value, "episode '{}', trace {}: node {} where node {} should be", id,
                    node.trace(), node.index(), trace.size());
      trace.push_back({f, i});
      ++nodes;
      tokens += span_of(node.token_ids()).size();
    }
  if (end.frames() != frames_.size() || end.nodes() != nodes || end.tokens() != tokens)
    return fail(errc::bad_value,
                "episode '{}': finish counts {} frames, {} nodes, {} tokens; {}, {}, {} came", id,
                end.frames(), end.nodes(), end.tokens(), frames_.size(), nodes, tokens);
  return {};
}

node_view sealed_episode::node(std::size_t trace, std::size_t node) const {
  const auto place = traces_[trace][node];
  return frames_[place.frame].node(place.node);
}

std::vector<node_view> sealed_episode::nodes(std::size_t trace) const {
  std::vector<node_view> out;
  out.reserve(traces_[trace].size());
  for (const auto place : traces_[trace])
    out.push_back(frames_[place.frame].node(place.node));
  return out;
}

std::uint64_t sealed_episode::bytes() const noexcept {
  std::uint64_t sum = 0;
  for (const auto &part : parts_)
    sum += part.size();
  return sum;
}

status check_elements(const sealed_episode &episode, const element_limits &demands) {
  for (const auto &frame : episode.frames())
    MILLRACE_TRY(check_elements(frame, demands));
  return {};
}

} // namespace millrace
