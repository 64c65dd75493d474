// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "actors/interfaces.hpp"
#include "actors/reader/quarantine.hpp"
#include "actors/run_config.hpp"
#include "actors/run_counters.hpp"
#include "actors/trainer/trainer.hpp"

namespace millrace {

/// What the actors of one process are made from.
struct pipeline_parts {
  std::shared_ptr<const run_config> config;
  std::filesystem::path recording;
  std::uint64_t max_steps = 0;
  std::filesystem::path dump;
  actor_context context;
  std::shared_ptr<run_counters> counters;
  std::shared_ptr<quarantine> refused;
  /// By rank.
  std::vector<rank_join> join;
};

/// The actors of one stage of the data path.
struct actor_stage {
  std::string name;
  std::vector<caf::actor> actors;
};

/// Ends the actors stage by stage, each when the one before it has ended.
/// @returns the names of those that had not ended by the deadline.
std::vector<std::string> shut_down(std::span<const actor_stage> stages, caf::scoped_actor &self,
                                   std::chrono::steady_clock::time_point deadline);

/// All actors of a run in one process, sources first and trainers last.
struct pipeline {
  std::vector<actor_stage> stages;
  caf::actor planner;
};

/// Spawns the actors and wires them. Errors: those of recording_reader::open.
result<pipeline> start_pipeline(caf::actor_system &system, const caf::actor &supervisor,
                                const pipeline_parts &parts);

} // namespace millrace
