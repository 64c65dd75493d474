// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/frame.hpp"
#include "runtime/result.hpp"
#include "schema/array.hpp"
#include "schema/body.hpp"
#include "schema/limits.hpp"

namespace millrace {

/// A per-token float32 stream as it came off the wire. Source: schema/micro_batch.fbs, Stream.
struct stream_view {
  std::span<const std::uint8_t> encodings; ///< [sequences], of wire::StreamEncoding
  std::span<const float> values;           ///< those of each sequence, one after the other
};

/// What a receiver accepts of a micro batch from outside.
struct micro_batch_limits {
  std::uint64_t tokens = limits::micro_batch_tokens; ///< padding included; seq_len, if known
  std::uint64_t tensor_bytes = limits::tensor_bytes; ///< of an array, padding included
};

/// A verified micro batch, as it is on the wire: T tokens in S sequences. Cheap to copy; keeps its
/// bytes alive. Every span has the length that it should have, every stream as many values as its
/// encodings ask for.
class micro_batch {
public:
  /// Checks structure and domain; nothing is copied but a misaligned body, which `meter` counts.
  /// Errors: bad_format, bad_value, too_large. The message names what does not fit.
  static result<micro_batch> parse(message parts,
                                   const std::shared_ptr<memory_meter> &meter = nullptr,
                                   const micro_batch_limits &accepted = {});

  std::uint64_t step() const noexcept { return body_->step(); }
  std::uint32_t rank() const noexcept { return body_->rank(); }
  std::uint32_t index() const noexcept { return body_->index(); }
  bool dummy() const noexcept { return body_->dummy(); }
  std::uint32_t padding() const noexcept { return body_->padding(); }
  /// T, without padding.
  std::size_t tokens() const noexcept { return input_ids().size(); }
  /// S, at least 1.
  std::size_t sequences() const noexcept { return sequence_lengths().size(); }

  std::span<const std::int32_t> input_ids() const noexcept { return span_of(body_->input_ids()); }
  /// [T], bits of wire::TokenFlag; a trainable token is valued.
  std::span<const std::uint8_t> flags() const noexcept { return span_of(body_->flags()); }
  /// [S], each at least 1; they sum to T.
  std::span<const std::uint32_t> sequence_lengths() const noexcept {
    return span_of(body_->sequence_lengths());
  }
  /// [S], valued tokens of each sequence.
  std::span<const std::uint32_t> sequence_values() const noexcept { return sequence_values_; }
  /// Precondition: sequence < sequences().
  std::string_view env_name(std::size_t sequence) const noexcept;
  std::span<const wire::Origin> origins() const noexcept { return span_of(body_->origins()); }
  /// [S], of the trace that each sequence came from, for reports; empty: nobody said it.
  std::span<const float> rewards() const noexcept { return span_of(body_->rewards()); }

  stream_view inference_logprobs() const noexcept { return view(*body_->inference_logprobs()); }
  stream_view temperatures() const noexcept { return view(*body_->temperatures()); }
  std::optional<stream_view> advantages() const noexcept { return view(body_->advantages()); }
  std::optional<stream_view> ref_logprobs() const noexcept { return view(body_->ref_logprobs()); }
  std::optional<stream_view> rl_weights() const noexcept { return view(body_->rl_weights()); }
  std::optional<stream_view> ce_weights() const noexcept { return view(body_->ce_weights()); }
  std::optional<stream_view> ref_kl_weights() const noexcept {
    return view(body_->ref_kl_weights());
  }

  /// [T], if it has them.
  std::optional<std::span<const std::uint8_t>> mm_token_type_ids() const noexcept;
  /// [T, layers, top_k], if it has them.
  const std::optional<array_view> &routed_experts() const noexcept { return routed_experts_; }
  /// How many ids the sampler left to choose from at each token, and which: int32 [T] and
  /// [sum of kept_counts]. Both, or none.
  const std::optional<array_view> &kept_counts() const noexcept { return kept_counts_; }
  const std::optional<array_view> &kept_ids() const noexcept { return kept_ids_; }
  /// Ascending by name.
  const std::vector<array_view> &mm_kwargs() const noexcept { return mm_kwargs_; }

  const message &parts() const noexcept { return parts_; }
  /// Bytes of all parts.
  std::uint64_t bytes() const noexcept;

private:
  explicit micro_batch(body<wire::MicroBatch> table) : body_(std::move(table)) {}
  static stream_view view(const wire::Stream &stream) noexcept;
  static std::optional<stream_view> view(const wire::Stream *stream) noexcept;

  status check_sequences(const micro_batch_limits &accepted);
  status check_flags();
  status check_streams() const;
  status check_stream(std::string_view name, const wire::Stream *stream) const;
  status read_arrays(const micro_batch_limits &accepted);
  status read_kept_tokens(const micro_batch_limits &accepted);

  body<wire::MicroBatch> body_;
  message parts_;
  std::vector<std::uint32_t> sequence_values_;
  std::optional<array_view> routed_experts_;
  std::vector<array_view> mm_kwargs_;
  std::optional<array_view> kept_counts_;
  std::optional<array_view> kept_ids_;
};

/// The raw arrays' checksums. Reads all of their bytes: for parts that came over a network.
/// Errors: damaged.
status check_arrays(const micro_batch &batch);

} // namespace millrace
