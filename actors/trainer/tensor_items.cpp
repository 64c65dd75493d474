// SPDX-License-Identifier: Apache-2.0
#include "actors/trainer/tensor_items.hpp"

#include <bit>
#include <utility>

namespace millrace {

static_assert(std::endian::native == std::endian::little, "tensors are little-endian in memory");

namespace {

template <class T>
tensor_item item(std::string name, dtype type, const host_array<T> &array,
                 std::vector<std::uint64_t> shape) {
  return {std::move(name), array.has_value(), type, std::move(shape),
          std::as_bytes(array.values())};
}

/// [1, N].
template <class T> tensor_item per_token(std::string name, dtype type, const host_array<T> &array) {
  return item(std::move(name), type, array, {1, array.size()});
}

tensor_item raw(std::string name, const array_tensor &array) {
  return item(std::move(name), array.type, array.bytes, array.shape);
}

} // namespace

tensor_items items_of(const micro_batch_tensors &t) {
  const auto sequences = t.sequence_lengths.size();
  tensor_items out;
  out.always = {per_token("input_ids", dtype::int64, t.input_ids),
                per_token("loss_mask", dtype::boolean, t.loss_mask),
                per_token("advantages", dtype::float32, t.advantages),
                per_token("inference_logprobs", dtype::float32, t.inference_logprobs),
                per_token("position_ids", dtype::int64, t.position_ids),
                per_token("temperatures", dtype::float32, t.temperatures),
                item("sequence_lengths", dtype::int64, t.sequence_lengths, {sequences}),
                item("seq_lens", dtype::int64, t.seq_lens, {sequences})};
  out.nullable = {per_token("ref_logprobs", dtype::float32, t.ref_logprobs),
                  per_token("rl_weights", dtype::float32, t.rl_weights),
                  per_token("ce_weights", dtype::float32, t.ce_weights),
                  per_token("ref_kl_weights", dtype::float32, t.ref_kl_weights),
                  raw("routed_experts", t.routed_experts)};
  if (t.mm_count == 0)
    out.nullable.push_back({.name = "mm_kwargs", .present = false, .shape = {}, .bytes = {}});
  for (const auto &array : t.mm_kwargs())
    out.nullable.push_back(raw("mm_kwargs." + array.name, array));
  out.nullable.push_back(per_token("mm_token_type_ids", dtype::int64, t.mm_token_type_ids));
  if (t.kept_counts.has_value()) {
    out.nullable.push_back(raw("kept_counts", t.kept_counts));
    out.nullable.push_back(raw("kept_ids", t.kept_ids));
  }
  return out;
}

} // namespace millrace
