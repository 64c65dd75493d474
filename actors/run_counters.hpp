// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>

#include "actors/node/wait_board.hpp"
#include "actors/reader/pinned_groups.hpp"
#include "runtime/frame.hpp"
#include "runtime/stage_meter.hpp"

namespace millrace {

/// So many lines of one kind are logged one by one; what follows is only counted.
inline constexpr std::uint64_t most_warnings = 10;

/// What the last of those lines ends with.
inline std::string_view last_warning(std::uint64_t number) noexcept {
  return number == most_warnings ? " (what follows of this kind is only counted)" : "";
}

/// Counts of one run that progress and reports read while actors write them. Thread: any.
struct run_counters {
  stage_meters stages;
  std::shared_ptr<wait_board> waits = std::make_shared<wait_board>();
  std::shared_ptr<pinned_groups> pinned = std::make_shared<pinned_groups>();
  std::shared_ptr<memory_meter> memory = std::make_shared<memory_meter>();

  std::atomic<std::uint64_t> mapped{0}; ///< bytes of mapped files

  // env readers
  std::atomic<std::uint64_t> episodes{0}; ///< ends of episodes seen, refused ones included
  std::atomic<std::uint64_t> nodes{0};
  std::atomic<std::uint64_t> tokens{0};
  std::atomic<std::uint64_t> groups{0};          ///< groups begun
  std::atomic<std::uint64_t> rejected{0};        ///< episodes that the door refused
  std::atomic<std::uint64_t> unparsed{0};        ///< refused episodes of which no record parses
  std::atomic<std::uint64_t> surplus{0};         ///< episodes beyond the size of their group
  std::atomic<std::uint64_t> unnamed_records{0}; ///< records that name no episode
  std::atomic<std::uint64_t> unnamed_bytes{0};

  // assemblers
  std::atomic<std::uint64_t> duplicates{0}; ///< episodes and frames that were there already
  std::atomic<std::uint64_t> late{0};       ///< episodes of a group that was closed already
  std::atomic<std::uint64_t> groups_open{0};
  std::atomic<std::uint64_t> overdue{0}; ///< groups that their deadline closed

  // planner, feeders
  /// Groups and micro batches that were made twice, since who made them first was lost.
  std::atomic<std::uint64_t> repeats{0};

  // scorers, planner, feeders, trainers
  std::atomic<std::uint64_t> tombstones{0}; ///< groups that ended outside a step and unscored
  std::atomic<std::uint64_t> groups_scored{0};
  std::atomic<std::uint64_t> refused_answers{0}; ///< that did not follow from what the log had
  std::atomic<std::uint64_t> steps_cut{0};
  std::atomic<std::uint64_t> steps_trained{0};
  std::atomic<std::uint64_t> backlog_traces{0}; ///< kept, waiting for a step
  std::atomic<std::uint64_t> version{0};        ///< of the policy, as the planner said last
  std::atomic<std::uint64_t> next_step{0};      ///< that groups are collected for
  std::atomic<std::uint64_t> backlog_steps{0};  ///< steps' worth of groups that wait
  std::atomic<std::uint64_t> wire_bytes{0};     ///< of micro batches
};

} // namespace millrace
