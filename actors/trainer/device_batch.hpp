// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "actors/packer/micro_batch.hpp"
#include "actors/trainer/widen_token.hpp"
#include "runtime/device/device.hpp"
#include "runtime/result.hpp"

namespace millrace {

/// A micro batch as it came off the wire, on its way to a device.
struct uploaded_batch {
  std::uint64_t step = 0;
  std::uint32_t rank = 0;
  std::uint32_t index = 0;
  device_upload upload;
  widen_job job; ///< what is read lies in the upload; what is written is null yet
  std::array<bool, widen_job::most_streams> has_column{}; ///< of job.streams
};

/// A micro batch at the widths that a trainer reads, in the memory of a device. N = tokens and
/// padding, S = sequences. As micro_batch_tensors (tensors.hpp), value for value. Copying it copies
/// a reference to its memory; see device_memory for when to let go.
struct device_batch {
  std::uint64_t step = 0;
  std::uint32_t rank = 0;
  std::uint32_t index = 0;
  std::size_t tokens = 0;    ///< N
  std::size_t padding = 0;   ///< the last ones of N
  std::size_t sequences = 0; ///< S

  const std::int64_t *input_ids = nullptr;        ///< [N]
  const std::uint8_t *loss_mask = nullptr;        ///< [N], bool: 0 or 1
  const std::int64_t *position_ids = nullptr;     ///< [N], from 0 in each sequence
  const std::int64_t *sequence_lengths = nullptr; ///< [S]; the last one holds the padding
  const float *advantages = nullptr;              ///< [N]
  const float *inference_logprobs = nullptr;      ///< [N]
  const float *temperatures = nullptr;            ///< [N]

  const float *ref_logprobs = nullptr;   ///< [N] or null
  const float *rl_weights = nullptr;     ///< [N] or null: 1 on the mask
  const float *ce_weights = nullptr;     ///< [N] or null: 0
  const float *ref_kl_weights = nullptr; ///< [N] or null: 0

  const std::int64_t *mm_token_type_ids = nullptr; ///< [N] or null

  device_memory memory; ///< owns them all
};

/// Sends the arrays of a micro batch that have a value per token or sequence, and small tables that
/// say where each sequence and its values begin: 5 to 34 bytes a token, where its tensors have 29
/// to
/// 53. The micro batch may go once it returns. Call it for the next one before the work on this
/// one, and both go on at once.
result<uploaded_batch> upload_batch(device &to, const micro_batch &batch);

/// Makes the tensors, in the compute lane.
result<device_batch> widen_on(device &here, uploaded_batch sent);

} // namespace millrace
