// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "runtime/frame.hpp"
#include "runtime/stage_meter.hpp"

namespace millrace {

/// Counts of one run that progress and reports read while actors write them. Thread: any.
struct run_counters {
  stage_meters stages;
  std::shared_ptr<memory_meter> memory = std::make_shared<memory_meter>();

  // env readers
  std::atomic<std::uint64_t> episodes{0}; ///< ends of episodes seen, refused ones included
  std::atomic<std::uint64_t> nodes{0};
  std::atomic<std::uint64_t> tokens{0};
  std::atomic<std::uint64_t> groups{0};          ///< groups begun
  std::atomic<std::uint64_t> rejected{0};        ///< episodes that the door refused
  std::atomic<std::uint64_t> unparsed{0};        ///< of those, the ones whose record does not parse
  std::atomic<std::uint64_t> unnamed_records{0}; ///< records that name no episode
  std::atomic<std::uint64_t> unnamed_bytes{0};

  // assemblers
  std::atomic<std::uint64_t> duplicates{0}; ///< episodes and frames that were there already
  std::atomic<std::uint64_t> late{0};       ///< episodes of a group that was closed already
  std::atomic<std::uint64_t> groups_open{0};

  // scorers, planner, feeders, trainers
  std::atomic<std::uint64_t> groups_scored{0};
  std::atomic<std::uint64_t> steps_cut{0};
  std::atomic<std::uint64_t> steps_trained{0};
  std::atomic<std::uint64_t> backlog_traces{0}; ///< kept, waiting for a step
  std::atomic<std::uint64_t> wire_bytes{0};     ///< of micro batches
};

} // namespace millrace
