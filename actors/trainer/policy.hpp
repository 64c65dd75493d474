// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

#include "actors/trainer/component_totals.hpp"
#include "actors/trainer/tensors.hpp"
#include "runtime/collective/collective.hpp"
#include "runtime/digest.hpp"
#include "runtime/result.hpp"

namespace millrace {

/// What a policy reads of a micro batch. N = tokens with padding, S = sequences.
/// Owner: the caller, for the call.
struct policy_batch {
  std::span<const std::int64_t> input_ids;        ///< [N]
  std::span<const std::int64_t> position_ids;     ///< [N], from 0 in each sequence
  std::span<const std::uint8_t> loss_mask;        ///< [N], 0 or 1
  std::span<const float> temperatures;            ///< [N]
  std::span<const float> inference_logprobs;      ///< [N], at sampling
  std::span<const std::int64_t> sequence_lengths; ///< [S]; the last one holds the padding
  /// All of it, with images and experts.
  const micro_batch_tensors &tensors;
};
policy_batch batch_of(const micro_batch_tensors &tensors);

/// A step of the optimizer. The gradients of this rank's micro batches have been handed over.
struct policy_update {
  std::uint64_t step = 0;
  digest128 digest;        ///< over all micro batches of all ranks
  component_totals totals; ///< over all ranks
  collective &ranks;       ///< to add up gradients; all ranks make the same calls
};

/// What is trained: the plug-in of a rank's trainer. For each micro batch of a step: forward(),
/// then backward() with what the losses made of it; then step(), on all ranks.
/// Thread: the trainer's; it may block. Errors: whatever keeps it; the rank then ends.
class policy {
public:
  virtual ~policy() = default;
  policy(const policy &) = delete;
  policy &operator=(const policy &) = delete;

  /// False: there is nothing to learn. No loss is computed, and backward() is not called.
  virtual bool learns() const noexcept { return true; }

  /// The log-probability of each token given those before it in its sequence, at its temperature,
  /// and the entropy of what it was drawn from. Unit: nats. Shape: [N]. The first token of a
  /// sequence has both 0. Writes every value.
  virtual status forward(const policy_batch &in, std::span<float> logprobs,
                         std::span<float> entropy) = 0;

  /// Adds to the gradient of the parameters. @param gradient d loss / d logprob, [N], of the batch
  /// that forward() was given last.
  virtual status backward(const policy_batch &in, std::span<const float> gradient) = 0;

  /// Adds up the gradients of all ranks, applies them, and begins anew with 0.
  virtual status step(const policy_update &in) = 0;

  /// Writes all that load() needs into `folder`, which exists. @param step its last.
  virtual status save(const std::filesystem::path &folder, std::uint64_t step) = 0;

  /// Gives the step that `folder` was saved after. From there on it must do what it would have done
  /// without the break. Errors: not_found, bad_format, bad_value, and then it is as it was.
  virtual result<std::uint64_t> load(const std::filesystem::path &folder) = 0;

  /// As if new: no step is applied.
  virtual void reset() = 0;

protected:
  policy() = default;
};

} // namespace millrace
