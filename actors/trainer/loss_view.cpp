// SPDX-License-Identifier: Apache-2.0
#include "actors/trainer/loss_view.hpp"

namespace millrace {

namespace {

std::optional<std::span<const float>> nullable(const host_array<float> &array) {
  return array.has_value() ? std::optional(array.values()) : std::nullopt;
}

} // namespace

loss_columns loss_view(const micro_batch_tensors &tensors) {
  return {.sequence_lengths = tensors.sequence_lengths.values(),
          .loss_mask = tensors.loss_mask.values(),
          .advantages = tensors.advantages.values(),
          .inference_logprobs = tensors.inference_logprobs.values(),
          .ref_logprobs = nullable(tensors.ref_logprobs),
          .rl_weights = nullable(tensors.rl_weights),
          .ce_weights = nullable(tensors.ce_weights),
          .ref_kl_weights = nullable(tensors.ref_kl_weights)};
}

} // namespace millrace
