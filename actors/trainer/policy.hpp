// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "actors/interfaces.hpp"
#include "actors/packer/micro_batch.hpp"
#include "runtime/digest.hpp"
#include "runtime/result.hpp"

namespace millrace {

/// A step as a policy is handed it. All ranks have agreed that they have the same one.
struct policy_step {
  std::uint64_t step = 0;
  digest128 digest;        ///< over all micro batches of all ranks
  component_totals totals; ///< over all ranks: what the components of the loss are divided by
  /// Of this rank, by index. Tensors are made of one at a time, by widen().
  std::span<const micro_batch> micro_batches;
};

/// What is trained: the plug-in of a rank's trainer. What load() is given was saved after the same
/// step; from there on it must do what it would have done without the break.
/// Thread: the trainer's; it may block.
class policy {
public:
  virtual ~policy() = default;
  policy(const policy &) = delete;
  policy &operator=(const policy &) = delete;

  /// Applies a step: the one after its last. Errors: whatever keeps it; the rank then ends.
  virtual status step(const policy_step &in) = 0;

  /// All that load() needs.
  virtual result<std::vector<std::byte>> save() const = 0;
  /// @param step the last one that `saved` holds.
  /// Errors: bad_format, bad_value, conflict, and then it is as it was.
  virtual status load(std::span<const std::byte> saved, std::uint64_t step) = 0;
  /// As if new: no step is applied.
  virtual void reset() = 0;

protected:
  policy() = default;
};

/// The policy that a config calls so. Errors: bad_config, with the names that there are.
result<std::unique_ptr<policy>> make_policy(std::string_view name);

} // namespace millrace
