// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <utility>

#include "actors/planner/ledger.hpp"
#include "actors/planner/planner_config.hpp"
#include "runtime/result.hpp"

namespace millrace {

/// Notices that the data gives nothing to train: planner.max_empty_batches. It counts what batches
/// count: traces, an episode without any as one; or tokens, an episode without any as seq_len. It
/// starts anew with the process.
class empty_watch {
public:
  empty_watch(const batch_config &batch, std::uint32_t most_batches, std::uint64_t seq_len)
      : batch_(batch), most_batches_(most_batches), seq_len_(seq_len) {}

  /// A group goes to no step.
  void add(const wire::GroupHeader &header, const log_group &entry);
  /// There is a sample to train, if it can be planned.
  void found() noexcept { before_ += std::exchange(empty_, 0); }
  /// There was none: what was found could not be planned.
  void lost() noexcept { empty_ += std::exchange(before_, 0); }
  /// A step that trains was cut.
  void cut(std::uint64_t step) noexcept;

  /// Why the run is to end: what became of the episodes since the last step, most frequent first.
  std::optional<error> verdict() const;

private:
  const batch_config batch_;
  const std::uint32_t most_batches_;
  const std::uint64_t seq_len_;
  std::uint64_t empty_ = 0;     ///< traces or tokens since the last sample
  std::uint64_t before_ = 0;    ///< and before it, since the last step that trains
  std::uint64_t last_step_ = 0; ///< 0: none yet
  std::array<std::uint64_t, episode_state_count> states_{}; ///< since the last step
};

} // namespace millrace
