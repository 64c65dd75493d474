// SPDX-License-Identifier: Apache-2.0
#pragma once

// What processes tell each other about themselves: who is there, how it goes, and when to end.
// Between processes these are bodies of schema/host.fbs (actors/node/host_codec).

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "actors/node/feed_messages.hpp"
#include "actors/peer.hpp"

namespace millrace {

/// An actor that other processes may send to.
struct actor_entry {
  role what = role::host;
  std::string name;

  bool operator==(const actor_entry &) const = default;
};

enum class process_state : std::uint8_t {
  alive,
  draining, ///< gets nothing new
  left,     ///< ended in good order
  gone      ///< its lease ran out, or a later incarnation took its name
};

/// A process as the directory knows it.
struct process_entry {
  std::string process; ///< one name per run: that of its first actor
  std::uint64_t incarnation = 0;
  std::string endpoint;
  std::string key; ///< public CURVE key; empty without CURVE
  std::vector<actor_entry> actors;
  process_state state = process_state::alive;

  bool operator==(const process_entry &) const = default;
};

/// What an actor waits for. Shown by `millrace why`, which follows `on`.
struct wait_entry {
  std::string who;  ///< actor: "trainer-3"
  std::string what; ///< for people: "step 12", "1 of 8 episodes of group maths/7/0"
  std::string on;   ///< the actor that must do something, or a role ("assembler"); empty: the world
  std::uint64_t ms = 0; ///< for so long

  bool operator==(const wait_entry &) const = default;
};

/// A number that a process counts: "tokens", "groups_scored". Rates are made from two of them.
struct counter_entry {
  std::string name;
  std::uint64_t value = 0;

  bool operator==(const counter_entry &) const = default;
};

/// How it goes in a process.
struct process_status {
  std::string host; ///< machine
  std::uint64_t pid = 0;
  std::string program; ///< version
  std::uint64_t uptime_ms = 0;
  std::uint64_t held = 0;   ///< bytes of frames
  std::uint64_t mapped = 0; ///< bytes of mapped files
  std::uint64_t limit = 0;  ///< memory.limit
  std::uint64_t peak_rss = 0;
  std::uint64_t in_flight = 0; ///< bytes queued or sent and not received
  std::vector<counter_entry> counters;
  std::vector<wait_entry> waits;

  bool operator==(const process_status &) const = default;
};

/// From a process to the directory, again and again: registers it and renews its lease.
struct process_alive {
  process_entry entry;
  process_status status;
};

/// From the directory to every process: these entries are new or have changed. A process that is in
/// no view is not gone for that.
struct directory_view {
  std::uint64_t directory = 0; ///< its incarnation: another one has forgotten what it knew
  std::vector<process_entry> entries;
};

/// From a process to the directory: it ends in good order.
struct process_leaves {
  std::string process;
  std::uint64_t incarnation = 0;
};

/// From the directory to a process: finish and leave.
struct drain_process {};

/// From the planner's process to every other: the run is over. `failure` is empty after a good end.
/// From the directory to a process: it is not wanted any more.
struct end_run {
  std::string failure;
  bool restart = false; ///< the run goes on; the process is to be started again
};

/// From a process to the directory: it has given up on that incarnation, and others do its work.
struct process_lost {
  std::string process;
  std::uint64_t incarnation = 0;
};

/// From a process to the planner's process, once its actors have ended: its part of the summary.
struct process_report {
  std::string process;
  std::string json; ///< run_report as JSON (actors/node/run_report)
};

// What tools ask (transport/client.hpp); each gets one answer.

/// Who is there? Answered by `status_answer`.
struct status_question {};
struct status_line {
  process_entry entry;
  process_status status; ///< as of `age_ms` ago
  std::uint64_t age_ms = 0;
  std::uint64_t since_ms = 0; ///< registered for so long
};
struct status_answer {
  std::string run;
  std::vector<status_line> processes;
};

/// Let an actor or a process of this name finish and leave. Answered by `tool_answer`.
struct drain_question {
  std::string name;
};
/// Done, or why not.
struct tool_answer {
  bool ok = false;
  std::string text;
};

/// The order is that of wire::HostMessage: append only.
struct host_parcel {
  std::variant<process_alive, directory_view, process_leaves, drain_process, end_run,
               process_report, status_question, status_answer, drain_question, tool_answer,
               process_lost, feed_question, feed_answer>
      what;
};

} // namespace millrace
