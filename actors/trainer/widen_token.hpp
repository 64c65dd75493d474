// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/device_fn.hpp"

// Widening as functions of one token, which a GPU runs for all tokens at once, and the host in a
// loop. They say what widen() of tensors.hpp does with runs of tokens. T = tokens without padding,
// N = with it, S = sequences.

namespace millrace {

/// The values of wire::TokenFlag and wire::StreamEncoding, without FlatBuffers, which nvcc need not
/// read; device_batch.cpp compares them.
namespace wire_values {
inline constexpr std::uint8_t trainable = 1;
inline constexpr std::uint8_t valued = 2;
enum encoding : std::uint8_t { tokens, valued_tokens, on_valued, on_trainable, everywhere };
} // namespace wire_values

/// A stream as it came off the wire, and where it goes.
struct stream_column {
  const std::uint8_t *encodings = nullptr; ///< [S]; null: absent
  const float *values = nullptr;
  const std::uint32_t *first_values = nullptr; ///< [S], where those of each sequence begin
  float pad = 0;                               ///< on padding tokens, and on all if it is absent
  float *out = nullptr;                        ///< [N]; null: the column is absent
};

/// A micro batch as it came off the wire and where its columns go, all in memory of one device.
struct widen_job {
  static constexpr std::size_t most_streams = 7;

  std::size_t tokens = 0; ///< T
  std::size_t padding = 0;
  std::size_t sequences = 0; ///< S

  const std::int32_t *input_ids = nullptr; ///< [T]
  const std::uint8_t *flags = nullptr;     ///< [T]
  const std::uint8_t *types = nullptr;     ///< [T] or null
  const std::uint32_t *starts = nullptr;   ///< [S + 1], where each sequence begins; the last is T
  std::uint32_t *valued_before = nullptr;  ///< [T], valued tokens before each one; made first

  std::int64_t *input_ids_out = nullptr;    ///< [N]
  std::uint8_t *loss_mask_out = nullptr;    ///< [N]
  std::int64_t *position_ids_out = nullptr; ///< [N]
  std::int64_t *types_out = nullptr;        ///< [N] or null
  std::int64_t *lengths_out = nullptr;      ///< [S]
  stream_column streams[most_streams];      // no std::array: its functions are not for devices
};

/// 1 for a token that compact streams have a value for, else 0.
MILLRACE_DEVICE_FN inline std::uint32_t is_valued(std::uint8_t flags) {
  return (flags & wire_values::valued) != 0 ? 1U : 0U;
}

/// The sequence of token `i`: the last one that begins at or before it. Precondition: i < T, no
/// sequence is empty.
MILLRACE_DEVICE_FN inline std::size_t sequence_of(const widen_job &job, std::size_t i) {
  std::size_t low = 0;
  std::size_t high = job.sequences;
  while (high - low > 1) {
    const auto middle = low + (high - low) / 2;
    if (job.starts[middle] <= i)
      low = middle;
    else
      high = middle;
  }
  return low;
}

/// A stream's value on token `i` of sequence `s`.
MILLRACE_DEVICE_FN inline float stream_value(const widen_job &job, const stream_column &stream,
                                             std::size_t s, std::size_t i) {
  const auto *const values = stream.values + stream.first_values[s];
  const auto start = job.starts[s];
  const auto flags = job.flags[i];
  switch (stream.encodings[s]) {
  case wire_values::tokens:
    return values[i - start];
  case wire_values::valued_tokens:
    return is_valued(flags) != 0 ? values[job.valued_before[i] - job.valued_before[start]] : 0.0F;
  case wire_values::on_valued:
    return is_valued(flags) != 0 ? values[0] : 0.0F;
  case wire_values::on_trainable:
    return (flags & wire_values::trainable) != 0 ? values[0] : 0.0F;
  default: // everywhere: parse() lets no other pass
    return values[0];
  }
}

/// Token `i` of N, in every column.
MILLRACE_DEVICE_FN inline void widen_token(const widen_job &job, std::size_t i) {
  constexpr std::int64_t pad_id = 1;
  const bool is_padding = i >= job.tokens;
  const std::size_t s = is_padding ? 0 : sequence_of(job, i);
  // Padding counts its positions from 0 too.
  const std::size_t start = is_padding ? job.tokens : job.starts[s];
  job.input_ids_out[i] = is_padding ? pad_id : job.input_ids[i];
  job.loss_mask_out[i] = is_padding
                             ? std::uint8_t{0}
                             : static_cast<std::uint8_t>(job.flags[i] & wire_values::trainable);
  job.position_ids_out[i] = static_cast<std::int64_t>(i - start);
  if (job.types_out != nullptr)
    job.types_out[i] = is_padding ? 0 : job.types[i];
  for (std::size_t k = 0; k < widen_job::most_streams; ++k) {
    const auto &stream = job.streams[k];
    if (stream.out != nullptr)
      stream.out[i] =
          is_padding || stream.encodings == nullptr ? stream.pad : stream_value(job, stream, s, i);
  }
}

/// The length of sequence `s`; the last one holds the padding.
MILLRACE_DEVICE_FN inline void widen_sequence(const widen_job &job, std::size_t s) {
  const auto length = static_cast<std::size_t>(job.starts[s + 1] - job.starts[s]);
  job.lengths_out[s] =
      static_cast<std::int64_t>(length + (s + 1 == job.sequences ? job.padding : 0));
}

} // namespace millrace
