// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/result.hpp"

namespace millrace {

/// What happens to a last batch that the end of data leaves short.
enum class last_batch : std::uint8_t {
  ship, ///< it becomes a step of its own
  hold  ///< its episodes stay held: trained by nobody, and the ledger says so
};

/// When a step is cut. Config keys: batch.*. Whole groups are taken in queue order until the count
/// is reached; the group that reaches it goes in whole.
struct batch_config {
  /// Traces with a kept sample in one step. Range: 0 (count tokens instead) to 1e9. Default: 0.
  /// More: fuller micro batches and steadier gradients, but a longer wait for each step.
  std::uint64_t traces = 0;

  /// Kept tokens in one step, counted after the cut at seq_len. Range: 0 (count traces instead) to
  /// 1e12. Default: 0. Exactly one of `traces` and `tokens` is set.
  std::uint64_t tokens = 0;

  /// Default: ship.
  last_batch last = last_batch::ship;

  /// Rules between the fields: exactly one of traces and tokens is set.
  std::vector<error> validate() const;
};

/// How far ahead of the trainers the planner works. Config keys: planner.*.
struct planner_config {
  /// Steps that are packed and handed to the feeders beyond the one in training. Range: 1 to 64.
  /// Default: 2. More: trainers wait less for an uneven source, and hosts hold that many more steps
  /// in memory.
  std::uint32_t lookahead = 2;

  /// Steps' worth of complete groups above which no new group is begun. Range: 1 to 1,024.
  /// Default: 2. More: bursts are absorbed, and episodes wait longer (they grow stale).
  std::uint32_t max_backlog_steps = 2;

  /// Groups that may be begun and not yet complete. Range: 1 to 1,000,000. Default: 64. More:
  /// needed where the episodes of a group are far apart in the source; each open group holds its
  /// bytes.
  std::uint32_t max_open_groups = 64;

  /// Versions that an episode's first one may lie behind the policy when its step is cut. Range: 0
  /// to 2^63 - 1. Default: none, no limit. Less: fresher data, and more is thrown away, long
  /// episodes first.
  std::optional<std::uint64_t> max_staleness;

  /// After so many batches' worth of data without a sample the run ends, as failed. Range: 0
  /// (never) to 1,000,000. Default: 0. Few: a short streak of bad groups ends it.
  std::uint32_t max_empty_batches = 0;
};

} // namespace millrace
