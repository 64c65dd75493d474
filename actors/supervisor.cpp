// SPDX-License-Identifier: Apache-2.0
#include "actors/supervisor.hpp"

#include <algorithm>
#include <utility>

#include "runtime/log.hpp"

namespace millrace {

namespace {

/// How long after a signal a run may go on with the steps that are packed.
constexpr std::chrono::seconds stop_deadline{30};

/// How much an error says of what went wrong.
int weight(errc code) { return code == errc::peer_lost ? 0 : code == errc::restart ? 1 : 2; }

} // namespace

void run_state::fail_with(error why) {
  if (!failure || weight(failure->code) < weight(why.code))
    failure = std::move(why);
}

/// One turn: take a message, or look around.
void supervisor::listen(std::chrono::milliseconds patience) {
  self_->receive(
      [&](const step_done &in) {
        if (in.report.assemblers_must_carry != 0)
          shown_.line(
              fmt::format("limits: all assemblers together hold up to {:.1f} MB "
                          "(planner.lookahead + 2 steps and planner.max_open_groups groups)",
                          static_cast<double>(in.report.assemblers_must_carry) * 1e-6));
        shown_.line(line_of(in.report));
        state_.steps.push_back(in.report);
      },
      [&](const run_note &in) { shown_.line(in.text); },
      [&](const source_report &in) { state_.sources.push_back(in); },
      [&](const run_finished &in) {
        state_.entries = in.entries;
        state_.grid_hash = in.grid_hash;
        state_.steps = in.steps; // those of earlier starts too
        state_.all_received = in.all_received;
        state_.finished = true;
      },
      [&](const run_failed &in) { take_failure(in); },
      [&](const run_over &in) {
        if (state_.finished)
          return;
        if (state_.failure && state_.failure->code == errc::peer_lost)
          state_.failure.reset();     // an echo of this
        state_.names_the_lost = true; // by order, too: there is nothing more to wait for
        state_.finished = true;
        state_.told_to_end = in.ordered;
        state_.drained_out = in.drained;
        if (!in.failure.empty())
          state_.fail_with({in.restart ? errc::restart : errc::peer_lost, in.failure});
      },
      [&](const others_ended &in) {
        state_.reports = in.reports;
        state_.others_ended = true;
      },
      [&](const hunger &in) { caf::anon_send(staff_.host, in); },
      [&](const drained &in) { caf::anon_send(staff_.host, in); },
      [&](const caf::down_msg &in) {
        if (!state_.finished && !state_.failure)
          state_.fail_with({errc::peer_lost, fmt::format("{} ended: {}", names_[in.source],
                                                         caf::to_string(in.reason))});
      },
      caf::after(patience) >> [] {});
}

void supervisor::take_failure(const run_failed &in) {
  state_.fail_with(in.who.empty()
                       ? in.what
                       : error{in.what.code, fmt::format("{}: {}", in.who, in.what.message)});
}

/// In the planner's process a signal stops the run; elsewhere it drains what can be drained.
void supervisor::take_signal(clock::time_point &give_up_at) {
  if (staff_.can_drain && give_up_at == clock::time_point::max()) {
    give_up_at = clock::now() + stop_deadline;
    caf::anon_send(staff_.host, drain{});
    return;
  }
  if (!staff_.has_planner) {
    state_.fail_with({errc::peer_lost, "stopped by a signal"});
    return;
  }
  if (!state_.interrupted.empty())
    give_up_at = clock::now();
  state_.interrupted = "stopped by a signal: what was not trained is held";
  give_up_at = std::min(give_up_at, clock::now() + stop_deadline);
  for (const auto &one : staff_.stages->contacts)
    if (one.what == role::planner)
      tell(one.who, stop_run{"a signal came"});
}

void supervisor::run(const staff &who, const std::function<void()> &look_around) {
  staff_ = who;
  for (const auto &stage : staff_.stages->stages)
    for (std::size_t i = 0; i < stage.actors.size(); ++i) {
      names_[stage.actors[i].address()] = stage.names[i];
      self_->monitor(stage.actors[i]);
    }
  auto give_up_at = clock::time_point::max();
  while (!state_.finished && !state_.failure) {
    listen(std::chrono::milliseconds(50));
    if (staff_.has_planner)
      shown_.tick();
    look_around();
    if (signals_.take() != 0)
      take_signal(give_up_at);
    if (clock::now() >= give_up_at)
      state_.failure =
          error{errc::timed_out, "stopped by a signal before the packed steps were trained"};
  }
  // The echoes of a failure may have come before its cause.
  const auto until = clock::now() + staff_.patience;
  while (state_.failure && state_.failure->code == errc::peer_lost && !state_.names_the_lost &&
         clock::now() < until)
    listen(std::chrono::milliseconds(10));
  // A failure here is the planner's to know; it ends everyone. A process that is started again is
  // none.
  if (state_.failure && !state_.wants_restart() && !state_.told_to_end && !staff_.has_planner &&
      staff_.failures) {
    tell(staff_.failures, run_failed{"", *state_.failure});
    state_.finished = false;
    const auto end = clock::now() + 2 * staff_.patience + std::chrono::seconds(5);
    while (!state_.told_to_end && clock::now() < end)
      listen(std::chrono::milliseconds(50));
  }
  shown_.clear();
}

status supervisor::end_others(clock::time_point deadline) {
  caf::anon_send(staff_.host, millrace::end_others{state_.failure ? state_.failure->message : ""});
  while (!state_.others_ended && clock::now() < deadline)
    listen(std::chrono::milliseconds(50));
  if (!state_.others_ended)
    return fail(errc::timed_out, "processes have not reported their end in time");
  return {};
}

} // namespace millrace
