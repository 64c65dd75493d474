// SPDX-License-Identifier: Apache-2.0
#include "actors/trainer/tensors.hpp"

#include "actors/trainer/spread.hpp"
#include "schema/node.hpp"

#include <algorithm>
#include <numeric>

namespace millrace {

namespace {

constexpr auto trainable = static_cast<std::uint8_t>(wire::TokenFlag::Trainable);
constexpr auto valued = static_cast<std::uint8_t>(wire::TokenFlag::Valued);
constexpr std::int64_t pad_id = 1;

void widen_stream(const micro_batch &batch, const stream_view &stream, float pad,
                  host_array<float> &tensor) {
  const auto out = tensor.resize(batch.tokens() + batch.padding());
  const auto *values = stream.values.data();
  std::size_t at = 0;
  for (std::size_t s = 0; s < batch.sequences(); ++s) {
    const std::size_t n = batch.sequence_lengths()[s];
    const auto flags = batch.flags().subspan(at, n);
    auto *const to = out.data() + at;
    switch (static_cast<wire::StreamEncoding>(stream.encodings[s])) {
    case wire::StreamEncoding::Tokens:
      std::copy_n(values, n, to);
      values += n;
      break;
    case wire::StreamEncoding::Valued:
      spread(flags, values, to);
      values += batch.sequence_values()[s];
      break;
    case wire::StreamEncoding::OnValued:
      fill_where(flags, valued, *values++, to);
      break;
    case wire::StreamEncoding::OnTrainable:
      fill_where(flags, trainable, *values++, to);
      break;
    case wire::StreamEncoding::Everywhere:
      std::fill_n(to, n, *values++);
      break;
    }
    at += n;
  }
  std::fill(out.begin() + static_cast<std::ptrdiff_t>(at), out.end(), pad);
}

void widen_stream(const micro_batch &batch, const std::optional<stream_view> &stream,
                  host_array<float> &tensor) {
  if (stream)
    widen_stream(batch, *stream, 0, tensor);
  else
    tensor.make_absent();
}

void widen_tokens(const micro_batch &batch, micro_batch_tensors &out) {
  const auto n = batch.tokens();
  const auto ids = out.input_ids.resize(n + batch.padding());
  const auto mask = out.loss_mask.resize(n + batch.padding());
  const auto *const from = batch.input_ids().data();
  const auto *const flags = batch.flags().data();
  for (std::size_t i = 0; i < n; ++i)
    ids[i] = from[i];
  for (std::size_t i = 0; i < n; ++i)
    mask[i] = flags[i] & trainable;
  std::fill(ids.begin() + static_cast<std::ptrdiff_t>(n), ids.end(), pad_id);
  std::fill(mask.begin() + static_cast<std::ptrdiff_t>(n), mask.end(), std::uint8_t{0});

  if (const auto types = batch.mm_token_type_ids(); types) {
    const auto to = out.mm_token_type_ids.resize(n + batch.padding());
    for (std::size_t i = 0; i < n; ++i)
      to[i] = (*types)[i];
    std::fill(to.begin() + static_cast<std::ptrdiff_t>(n), to.end(), std::int64_t{0});
  } else {
    out.mm_token_type_ids.make_absent();
  }
}

void widen_sequences(const micro_batch &batch, micro_batch_tensors &out) {
  const auto count = batch.sequences();
  const auto lengths = out.sequence_lengths.resize(count);
  const auto seq_lens = out.seq_lens.resize(count);
  const auto positions = out.position_ids.resize(batch.tokens() + batch.padding());
  out.env_names.resize(count);
  auto at = positions.begin();
  for (std::size_t s = 0; s < count; ++s) {
    const auto n = batch.sequence_lengths()[s];
    lengths[s] = n;
    std::iota(at, at + n, std::int64_t{0});
    at += n;
    out.env_names[s] = batch.env_name(s);
  }
  std::iota(at, positions.end(), std::int64_t{0}); // padding counts from 0 too
  lengths.back() += batch.padding();
  std::copy(lengths.begin(), lengths.end(), seq_lens.begin());
}

/// @param rows of the tensor; those after the array's own are 0.
void join_array(const array_view &array, std::uint64_t rows, array_tensor &out) {
  out.name = array.name;
  out.type = array.type;
  out.shape.assign(array.shape.begin(), array.shape.end());
  out.shape.front() = rows;
  const auto bytes = out.bytes.resize(static_cast<std::size_t>(rows) * array.row_bytes());
  auto to = bytes.begin();
  for (auto piece : array.pieces)
    to = std::copy(piece.begin(), piece.end(), to);
  std::fill(to, bytes.end(), std::byte{0});
}

void join_optional(const std::optional<array_view> &array, std::uint64_t rows, array_tensor &out) {
  if (array)
    join_array(*array, rows, out);
  else
    out.bytes.make_absent();
}

void widen_arrays(const micro_batch &batch, micro_batch_tensors &out) {
  const auto n = batch.tokens() + batch.padding();
  join_optional(batch.routed_experts(), n, out.routed_experts);
  join_optional(batch.kept_counts(), n, out.kept_counts);
  join_optional(batch.kept_ids(), batch.kept_ids() ? batch.kept_ids()->rows() : 0, out.kept_ids);
  out.mm_count = batch.mm_kwargs().size();
  if (out.mm_arrays.size() < out.mm_count)
    out.mm_arrays.resize(out.mm_count);
  for (std::size_t i = 0; i < out.mm_count; ++i)
    join_array(batch.mm_kwargs()[i], batch.mm_kwargs()[i].rows(), out.mm_arrays[i]);
}

std::int64_t count_nonzero(const host_array<float> &weights) noexcept {
  std::int64_t count = 0;
  for (float x : weights.values())
    count += x != 0.0F ? 1 : 0;
  return count;
}

} // namespace

void widen(const micro_batch &batch, micro_batch_tensors &out) {
  out.step = batch.step();
  out.rank = batch.rank();
  out.index = batch.index();
  out.padding = batch.padding();
  widen_tokens(batch, out);
  widen_sequences(batch, out);
  widen_stream(batch, batch.inference_logprobs(), 0, out.inference_logprobs);
  widen_stream(batch, batch.temperatures(), 1, out.temperatures);
  widen_stream(batch, batch.advantages(), out.advantages);
  if (!out.advantages.has_value()) {
    const auto zeros = out.advantages.resize(out.tokens());
    std::fill(zeros.begin(), zeros.end(), 0.0F);
  }
  widen_stream(batch, batch.ref_logprobs(), out.ref_logprobs);
  widen_stream(batch, batch.rl_weights(), out.rl_weights);
  widen_stream(batch, batch.ce_weights(), out.ce_weights);
  widen_stream(batch, batch.ref_kl_weights(), out.ref_kl_weights);
  widen_arrays(batch, out);
}

std::uint64_t micro_batch_tensors::bytes() const noexcept {
  std::uint64_t sum = loss_mask.size() + routed_experts.bytes.size() + kept_counts.bytes.size() +
                      kept_ids.bytes.size();
  for (const auto *array :
       {&input_ids, &position_ids, &sequence_lengths, &seq_lens, &mm_token_type_ids})
    sum += array->size() * sizeof(std::int64_t);
  for (const auto *array : {&advantages, &inference_logprobs, &temperatures, &ref_logprobs,
                            &rl_weights, &ce_weights, &ref_kl_weights})
    sum += array->size() * sizeof(float);
  for (const auto &array : mm_kwargs())
    sum += array.bytes.size();
  return sum;
}

component_totals count_components(const micro_batch_tensors &tensors) noexcept {
  component_totals out;
  const auto mask = tensors.loss_mask.values();
  if (tensors.rl_weights.has_value()) {
    const auto weights = tensors.rl_weights.values();
    for (std::size_t i = 0; i < mask.size(); ++i)
      out.rl += mask[i] != 0 && weights[i] != 0.0F ? 1 : 0;
  } else {
    out.rl = static_cast<std::int64_t>(count_true(mask));
  }
  out.ce = count_nonzero(tensors.ce_weights);
  out.ref_kl = count_nonzero(tensors.ref_kl_weights);
  return out;
}

} // namespace millrace
