// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "actors/interfaces.hpp"
#include "actors/planner/run_log.hpp"
#include "actors/reader/bigram_env.hpp"
#include "actors/reader/quarantine.hpp"
#include "actors/run_config.hpp"
#include "actors/run_counters.hpp"
#include "actors/trainer/feed_desks.hpp"
#include "actors/trainer/trainer.hpp"

namespace millrace {

/// An actor to start in this process.
struct actor_spec {
  role what = role::host;
  std::string name;         ///< "scorer-1"; of a trainer: "trainer-RANK"
  std::uint32_t number = 0; ///< of an env reader, rank of a trainer
};

/// All stages of a run, as many as the config says. Without the directory.
std::vector<actor_spec> all_stages(const run_config &config);

/// What the actors of one process are made from.
struct pipeline_parts {
  std::shared_ptr<const run_config> config;
  std::filesystem::path recording;
  std::uint64_t max_steps = 0;
  std::filesystem::path dump;    ///< folder for tensors and parameters; empty: none
  std::filesystem::path exports; ///< folder for annotated tokens; empty: none
  actor_context context;
  std::shared_ptr<run_counters> counters;
  std::shared_ptr<quarantine> refused;
  std::filesystem::path state; ///< the state folder
  /// How the trainer of a rank joins the others, what it is told of them, and what it has told.
  std::function<rank_join(std::uint32_t rank)> join;
  std::function<void(const rank_notice &)> noticed;
  std::function<std::vector<rank_notice>()> told;
  /// Ends the waits of trainers for each other.
  std::shared_ptr<collective_breaker> breaker;
  /// Where trainers in Python come; without desks if they are of another kind.
  std::shared_ptr<feed_desks> desks;
  std::unique_ptr<run_log> log; ///< where the planner is; it takes it
  /// Of a live environment: what its policy shows, and what it has made. Null without one.
  std::shared_ptr<bigram_board> board;
  std::shared_ptr<live_tally> live;
};

/// The actors of one stage of the data path.
struct actor_stage {
  std::string name;
  std::vector<caf::actor> actors;
  std::vector<std::string> names; ///< parallel to actors
};

/// An actor that others send to.
struct contact {
  role what = role::host;
  peer who;
};

/// The actors of a process, sources first and trainers last.
struct pipeline {
  std::vector<actor_stage> stages;
  std::vector<contact> contacts;
};

/// Spawns the actors that `specs` names. They are told of each other by introduce(), of those in
/// other processes as these come and go. Errors: those of recording_reader::open.
/// @param planner here or elsewhere; ignored if `specs` has one.
result<pipeline> start_actors(caf::actor_system &system, std::span<const actor_spec> specs,
                              peer planner, const peer &supervisor, pipeline_parts &parts);

/// Whether actors of role `who` must be told of those of role `whom`.
bool works_with(role who, role whom) noexcept;

/// Whether they must be told when one of those is gone.
bool hears_of_loss(role who, role whom) noexcept;

/// Tells the contacts of each other.
void introduce(std::span<const contact> contacts);

/// Ends the actors stage by stage, each when the one before it has ended.
/// @returns the names of those that had not ended by the deadline.
std::vector<std::string> shut_down(std::span<const actor_stage> stages, caf::scoped_actor &self,
                                   std::chrono::steady_clock::time_point deadline);

} // namespace millrace
