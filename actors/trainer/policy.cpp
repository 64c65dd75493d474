// SPDX-License-Identifier: Apache-2.0
#include "actors/trainer/policy.hpp"

namespace millrace {

policy_batch batch_of(const micro_batch_tensors &tensors) {
  return {tensors.input_ids.values(),
          tensors.position_ids.values(),
          tensors.loss_mask.values(),
          tensors.temperatures.values(),
          tensors.inference_logprobs.values(),
          tensors.sequence_lengths.values(),
          tensors};
}

} // namespace millrace
