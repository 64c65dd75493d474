// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/node/host.hpp"
#include "actors/node/run_report.hpp"
#include "actors/pipeline.hpp"
#include "actors/progress.hpp"
#include "actors/run_summary.hpp"
#include "runtime/signals.hpp"

namespace millrace {

/// What the supervisor of a process has heard.
struct run_state {
  std::vector<step_report> steps;
  std::shared_ptr<const ledger> entries;
  digest128 grid_hash;
  bool all_received = false;
  std::vector<source_report> sources;
  std::optional<error> failure;
  std::string interrupted;
  bool names_the_lost = false; ///< `failure` says who is gone
  bool finished = false;       ///< the planner has, or the process is told to end
  bool told_to_end = false;
  bool drained_out = false;            ///< the process leaves a run that goes on
  std::vector<process_report> reports; ///< of other processes
  bool others_ended = false;

  /// The process is to be started again, and then its part in the run goes on.
  bool wants_restart() const noexcept { return failure && failure->code == errc::restart; }
  /// The run has ended, not only this process's part in it.
  bool over() const noexcept { return !drained_out && !wants_restart(); }
  /// The first failure stands, but for one that only says that somebody is gone, or that a restart
  /// would do: the cause replaces it.
  void fail_with(error why);
};

/// The thread that started the actors of a process, and waits for their end. It prints, takes
/// signals, and brings the process down in order.
class supervisor {
public:
  struct staff {
    caf::actor host;
    pipeline *stages = nullptr;
    bool has_planner = false;
    /// Others know it as an actor that reports failures: sends one to the planner's process.
    peer failures;
    /// After a rank has lost another one: how long it may take until it is known which.
    std::chrono::milliseconds patience{200};
    /// A signal lets the process finish its work and leave, instead of failing the run.
    bool can_drain = false;
  };

  supervisor(caf::scoped_actor &self, signal_guard &signals, progress &shown, run_state &state)
      : self_(self), signals_(signals), shown_(shown), state_(state) {}

  /// Until the planner has finished, the process is told to end, something fails, or a stop takes
  /// too long.
  /// @param look_around is called about twenty times a second.
  void run(const staff &who, const std::function<void()> &look_around);

  /// Ends the other processes. Errors: who has not reported in time.
  status end_others(std::chrono::steady_clock::time_point deadline);

private:
  using clock = std::chrono::steady_clock;

  void listen(std::chrono::milliseconds patience);
  void take_signal(clock::time_point &give_up_at);
  void take_failure(const run_failed &in);

  caf::scoped_actor &self_;
  signal_guard &signals_;
  progress &shown_;
  run_state &state_;
  staff staff_;
  std::map<caf::actor_addr, std::string> names_; ///< of all actors of this process
};

} // namespace millrace
