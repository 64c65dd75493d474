// SPDX-License-Identifier: Apache-2.0
#include "actors/packer/gather.hpp"

#include <algorithm>
#include <utility>

#include "actors/graph/echo.hpp"
#include "actors/packer/array_join.hpp"
#include "actors/packer/pruned.hpp"
#include "actors/packer/sequence_plan.hpp"
#include "schema/fixed_builder.hpp"
#include "schema/limits.hpp"

namespace millrace {

namespace {

using flatbuffers::Offset;
using flatbuffers::Vector;

constexpr auto trainable = static_cast<std::uint8_t>(wire::TokenFlag::Trainable);
constexpr auto valued = static_cast<std::uint8_t>(wire::TokenFlag::Valued);

/// All that is decided before a byte is written.
struct bin_layout {
  std::vector<piece> pieces;
  std::vector<sequence_plan> sequences;
  std::vector<std::string_view> env_names;
  std::vector<std::uint32_t> sequence_envs;
  std::uint64_t tokens = 0;
  bool type_ids = false;
  std::optional<array_join> experts;
  std::vector<array_join> images;
  std::optional<kept_tokens_join> kept_tokens;
};

status check_tokens(const bin &plan) {
  std::uint64_t tokens = 0;
  for (const auto &source : plan.samples)
    tokens += source.tokens;
  if (tokens + plan.padding > limits::micro_batch_tokens)
    return fail(errc::too_large, "{} tokens and {} of padding, at most {} are allowed", tokens,
                plan.padding, limits::micro_batch_tokens);
  return {};
}

void name_envs(const bin &plan, bin_layout &layout) {
  for (const auto &source : plan.samples) {
    const auto found = std::find(layout.env_names.begin(), layout.env_names.end(), source.env);
    layout.sequence_envs.push_back(static_cast<std::uint32_t>(found - layout.env_names.begin()));
    if (found == layout.env_names.end())
      layout.env_names.push_back(source.env);
  }
}

result<bin_layout> lay_out(const bin &plan) {
  if (plan.samples.empty())
    return fail(errc::bad_value, "it has no samples");
  MILLRACE_TRY(check_tokens(plan));
  bin_layout out;
  std::size_t nodes = 0;
  for (const auto &source : plan.samples)
    nodes += source.path->nodes.size();
  out.pieces.reserve(nodes);
  out.sequences.reserve(plan.samples.size());
  for (std::size_t s = 0; s < plan.samples.size(); ++s) {
    auto sequence = plan_sequence(plan.samples[s], plan.dummy, out.pieces);
    if (!sequence)
      return with_context(std::move(sequence).error(),
                          fmt::format("sample {} of '{}'", s, plan.samples[s].env));
    out.tokens += sequence->tokens;
    out.type_ids = out.type_ids || sequence->type_ids;
    out.sequences.push_back(*sequence);
  }
  fill_absent_streams(out.sequences);
  name_envs(plan, out);
  auto experts = join_experts(out.sequences);
  if (!experts)
    return tl::unexpected(std::move(experts).error());
  out.experts = *std::move(experts);
  auto images = join_images(out.sequences);
  if (!images)
    return tl::unexpected(std::move(images).error());
  out.images = *std::move(images);
  auto kept_tokens = join_kept_tokens(out.sequences);
  if (!kept_tokens)
    return tl::unexpected(std::move(kept_tokens).error());
  out.kept_tokens = *std::move(kept_tokens);
  return out;
}

std::size_t floats_of(const bin_layout &layout, std::size_t stream) {
  std::size_t floats = 0;
  for (const auto &sequence : layout.sequences)
    floats += sequence.floats(sequence.streams[stream]);
  return floats;
}

bool has_stream(const bin_layout &layout, std::size_t stream) {
  return layout.sequences.front().streams[stream].present;
}

/// An upper bound of the FlatBuffer's size. Each vector takes its bytes, its length and padding.
std::size_t size_of_body(const bin_layout &layout) {
  constexpr std::size_t vector = 16;
  constexpr std::size_t fixed = 2048; // root, vtables, identifier
  const auto n = static_cast<std::size_t>(layout.tokens);
  const auto sequences = layout.sequences.size();
  std::size_t size = fixed + n * (sizeof(std::int32_t) + 1 + (layout.type_ids ? 1 : 0));
  for (std::size_t i = 0; i < stream_count; ++i)
    if (has_stream(layout, i))
      size += 64 + 2 * vector + sequences + floats_of(layout, i) * sizeof(float);
  size +=
      sequences * (2 * sizeof(std::uint32_t) + sizeof(float) + sizeof(wire::Origin)) + 4 * vector;
  for (auto name : layout.env_names)
    size += 2 * vector + name.size();
  if (layout.kept_tokens)
    size += 512;
  for (const auto &image : layout.images)
    size += 256 + image.name.size() + 8 * limits::array_rank;
  return size;
}

void write_flags(const sequence_plan &sequence, bool dummy, std::uint8_t *out) {
  for (const auto &p : sequence.pieces) {
    const auto flag = dummy || p.mask_off ? valued : static_cast<std::uint8_t>(trainable | valued);
    const auto *mask = p.node->mask.data();
    for (std::uint32_t i = 0; i < p.tokens; ++i)
      out[i] = mask[i] != 0 ? flag : std::uint8_t{0};
    out += p.tokens;
  }
}

std::optional<std::span<const float>> compact_of(const node_view &node, stream_id id) {
  switch (id) {
  case stream_id::logprobs:
    return node.logprobs;
  case stream_id::ref_logprobs:
    return node.reference_logprobs;
  default:
    return node.advantages;
  }
}

void write_compact(const sequence_plan &sequence, stream_id id, float *out) {
  for (const auto &p : sequence.pieces)
    if (const auto values = compact_of(*p.node, id); values)
      out = std::copy_n(values->data(), p.values, out);
    else
      out = std::fill_n(out, p.values, 0.0F);
}

/// `value` on trainable tokens whose advantage is not 0.
void write_pruned_part(const sequence_plan &sequence, float value, float *out) {
  for (const auto &p : sequence.pieces) {
    if (p.mask_off || !p.node->advantages) {
      out = std::fill_n(out, p.values, 0.0F);
      continue;
    }
    write_pruned(p.node->advantages->first(p.values), value, out);
    out += p.values;
  }
}

/// One node's weights where some are set or pruned on trainable tokens.
void adjust_weights(const sample_source &source, const stream_part &part, const piece &p,
                    float *out) {
  const bool one_number = source.advantage_rule == wire::AdvantageRule::Constant;
  const auto *mask = p.node->mask.data();
  const float *advantages = p.node->advantages ? p.node->advantages->data() : nullptr;
  std::size_t value = 0;
  for (std::uint32_t i = 0; i < p.tokens; ++i) {
    if (mask[i] == 0)
      continue;
    if (part.on_mask)
      out[i] = part.value;
    const float advantage = one_number              ? source.advantage
                            : advantages != nullptr ? advantages[value]
                                                    : 0.0F;
    ++value;
    if (part.pruned && advantage == 0.0F && out[i] != 0.0F)
      out[i] = 0.0F;
  }
}

void write_weights(const sequence_plan &sequence, stream_id id, const stream_part &part,
                   float *out) {
  for (const auto &p : sequence.pieces) {
    if (const auto &weights = weights_of(*p.node, id); weights && !weights_off(p, id))
      std::copy_n(weights->data(), p.tokens, out);
    else
      std::fill_n(out, p.tokens, 0.0F);
    if (id == stream_id::ce && p.echo != 0 && !p.ce_off)
      raise_to_echo(*p.node, p.echo, {out, p.tokens});
    if ((part.on_mask || part.pruned) && !p.mask_off)
      adjust_weights(*sequence.source, part, p, out);
    out += p.tokens;
  }
}

void write_part(const sequence_plan &sequence, stream_id id, float *out) {
  const auto &part = sequence.at(id);
  switch (part.encoding) {
  case wire::StreamEncoding::Tokens:
    write_weights(sequence, id, part, out);
    return;
  case wire::StreamEncoding::Valued:
    if (part.pruned)
      write_pruned_part(sequence, part.value, out);
    else
      write_compact(sequence, id, out);
    return;
  default:
    *out = part.value;
  }
}

/// Writes the body of a bin whose layout is known. Owner: layout and plan outlive it.
class body_writer {
public:
  body_writer(const bin &plan, const bin_layout &layout, std::size_t size,
              const std::shared_ptr<memory_meter> &meter)
      : plan_(plan), layout_(layout), meter_(meter), builder_(size, meter) {}

  message write() && {
    for (std::size_t i = 0; i < stream_count; ++i)
      if (has_stream(layout_, i))
        streams_[i] = write_stream(static_cast<stream_id>(i));
    write_sequences();
    write_tokens();
    write_arrays();
    const auto root = wire::CreateMicroBatch(
        *builder_, plan_.step, plan_.rank, plan_.index, plan_.dummy, input_ids_, flags_, lengths_,
        envs_, env_names_, plan_.padding, stream(stream_id::logprobs),
        stream(stream_id::temperatures), stream(stream_id::advantages),
        stream(stream_id::ref_logprobs), stream(stream_id::rl), stream(stream_id::ce),
        stream(stream_id::ref_kl), type_ids_, experts_, images_, origins_, kept_counts_, kept_ids_,
        rewards_);
    parts_.front() = std::move(builder_).finish(root);
    return std::move(parts_);
  }

private:
  template <class T> std::pair<Offset<Vector<T>>, T *> uninitialised(std::size_t size) {
    T *values = nullptr;
    const auto at = builder_->CreateUninitializedVector<T>(size, &values);
    return {Offset<Vector<T>>(at), values};
  }

  Offset<wire::Stream> stream(stream_id id) const { return streams_[static_cast<std::size_t>(id)]; }

  Offset<wire::Stream> write_stream(stream_id id) {
    auto [values_at, values] =
        uninitialised<float>(floats_of(layout_, static_cast<std::size_t>(id)));
    auto [encodings_at, encodings] = uninitialised<std::uint8_t>(layout_.sequences.size());
    for (const auto &sequence : layout_.sequences) {
      const auto &part = sequence.at(id);
      *encodings++ = static_cast<std::uint8_t>(part.encoding);
      write_part(sequence, id, values);
      values += sequence.floats(part);
    }
    return wire::CreateStream(*builder_, encodings_at, values_at);
  }

  void write_sequences() {
    std::vector<wire::Origin> origins;
    auto [at, lengths] = uninitialised<std::uint32_t>(layout_.sequences.size());
    lengths_ = at;
    for (const auto &sequence : layout_.sequences) {
      const auto &source = *sequence.source;
      const auto &from = source.origin;
      *lengths++ = sequence.tokens;
      origins.emplace_back(from.ordinal(), from.episode(), from.trace(), from.branch(),
                           static_cast<std::uint32_t>(source.path->tokens - source.tokens));
    }
    origins_ = builder_->CreateVectorOfStructs(origins);
    auto [rewards_at, rewards] = uninitialised<float>(layout_.sequences.size());
    rewards_ = rewards_at;
    for (const auto &sequence : layout_.sequences)
      *rewards++ = sequence.source->reward;
    envs_ = builder_->CreateVector(layout_.sequence_envs);
    std::vector<Offset<flatbuffers::String>> names;
    for (auto name : layout_.env_names)
      names.push_back(builder_->CreateString(name.data(), name.size()));
    env_names_ = builder_->CreateVector(names);
  }

  void write_tokens() {
    const auto n = static_cast<std::size_t>(layout_.tokens);
    auto [ids_at, ids] = uninitialised<std::int32_t>(n);
    auto [flags_at, flags] = uninitialised<std::uint8_t>(n);
    input_ids_ = ids_at;
    flags_ = flags_at;
    for (const auto &sequence : layout_.sequences) {
      for (const auto &p : sequence.pieces)
        ids = std::copy_n(p.node->token_ids.data(), p.tokens, ids);
      write_flags(sequence, plan_.dummy, flags);
      flags += sequence.tokens;
    }
    if (!layout_.type_ids)
      return;
    auto [types_at, types] = uninitialised<std::uint8_t>(n);
    type_ids_ = types_at;
    for (const auto &p : layout_.pieces)
      if (p.node->mm_token_type_ids)
        types = std::copy_n(p.node->mm_token_type_ids->data(), p.tokens, types);
      else
        types = std::fill_n(types, p.tokens, std::uint8_t{0});
  }

  Offset<wire::Array> write_array(const array_join &array, std::string_view name) {
    const auto bytes = array.join(meter_);
    return add_array(*builder_, parts_, name, array.type, array.shape, bytes);
  }

  void write_arrays() {
    if (layout_.experts)
      experts_ = write_array(*layout_.experts, {});
    if (layout_.kept_tokens) {
      kept_counts_ = write_array(layout_.kept_tokens->counts, {});
      kept_ids_ = write_array(layout_.kept_tokens->ids, {});
    }
    if (layout_.images.empty())
      return;
    std::vector<Offset<wire::Array>> images;
    for (const auto &image : layout_.images)
      images.push_back(write_array(image, image.name));
    images_ = builder_->CreateVector(images);
  }

  const bin &plan_;
  const bin_layout &layout_;
  std::shared_ptr<memory_meter> meter_;
  fixed_builder builder_;
  message parts_ = message(1);
  std::array<Offset<wire::Stream>, stream_count> streams_;
  Offset<Vector<std::int32_t>> input_ids_;
  Offset<Vector<std::uint8_t>> flags_;
  Offset<Vector<std::uint8_t>> type_ids_;
  Offset<Vector<std::uint32_t>> lengths_;
  Offset<Vector<std::uint32_t>> envs_;
  Offset<Vector<Offset<flatbuffers::String>>> env_names_;
  Offset<Vector<const wire::Origin *>> origins_;
  Offset<Vector<float>> rewards_;
  Offset<wire::Array> experts_;
  Offset<wire::Array> kept_counts_;
  Offset<wire::Array> kept_ids_;
  Offset<Vector<Offset<wire::Array>>> images_;
};

result<message> gather_unnamed(const bin &plan, const std::shared_ptr<memory_meter> &meter) {
  auto layout = lay_out(plan);
  if (!layout)
    return tl::unexpected(std::move(layout).error());
  const auto size = size_of_body(*layout);
  if (size > limits::body_bytes)
    return fail(errc::too_large, "its body takes {} bytes, at most {} are allowed", size,
                limits::body_bytes);
  auto parts = body_writer(plan, *layout, size, meter).write();
  if (parts.size() > limits::parts)
    return fail(errc::too_large, "its arrays take {} parts, at most {} are allowed", parts.size(),
                limits::parts);
  if (meter)
    for (const auto &part : parts)
      meter->copied.fetch_add(part.size(), std::memory_order_relaxed);
  return parts;
}

} // namespace

result<message> gather(const bin &plan, const std::shared_ptr<memory_meter> &meter) {
  auto out = gather_unnamed(plan, meter);
  if (!out)
    return with_context(std::move(out).error(), fmt::format("step {}, rank {}, micro batch {}",
                                                            plan.step, plan.rank, plan.index));
  return out;
}

} // namespace millrace
