// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "actors/interfaces.hpp"
#include "actors/packer/micro_batch.hpp"
#include "runtime/collective/collective.hpp"
#include "runtime/digest.hpp"
#include "runtime/result.hpp"

namespace millrace {

/// A step as a learner is handed it. All ranks have agreed that they have the same one.
struct learner_step {
  std::uint64_t step = 0;
  digest128 digest;        ///< over all micro batches of all ranks
  component_totals totals; ///< over all ranks: what the components of the loss are divided by
  std::span<const staleness_count> staleness; ///< of all its episodes, ascending
  /// Of this rank, by index. Tensors are made of one at a time, by widen().
  std::span<const micro_batch> micro_batches;
  collective &ranks; ///< all ranks make the same calls
};

/// What the trainer of a rank does with its steps. What load() is given was saved after the same
/// step; from there on it must do what it would have done without the break.
/// Thread: the trainer's; it may block.
class learner {
public:
  virtual ~learner() = default;
  learner(const learner &) = delete;
  learner &operator=(const learner &) = delete;

  /// The ranks have met: no step comes before. @param generation counts how often they did.
  virtual status begin(std::uint64_t generation) = 0;

  /// Applies a step: the one after its last. Errors: whatever keeps it; the rank then ends.
  virtual status step(const learner_step &in) = 0;

  /// All that load() needs of its last step. What is too large for that is written into `folder`,
  /// which is the caller's, may not exist yet, and is there again for load().
  virtual result<std::vector<std::byte>> save(const std::filesystem::path &folder) = 0;
  /// @param step the last one that `saved` and `folder` hold.
  /// Errors: bad_format, bad_value, conflict, and then it is as it was.
  virtual status load(std::span<const std::byte> saved, const std::filesystem::path &folder,
                      std::uint64_t step) = 0;
  /// As if new: no step is applied.
  virtual void reset() = 0;

protected:
  learner() = default;
};

} // namespace millrace
