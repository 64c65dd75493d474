// SPDX-License-Identifier: Apache-2.0
// Groups that wait, and how those end that go to no step.
#include <algorithm>
#include <utility>

#include "actors/planner/planner.hpp"
#include "runtime/crash_point.hpp"

namespace millrace {

/// The step that groups are collected for.
std::uint64_t planner::next_step() const {
  const auto committed = log_->history().committed();
  return std::max(committed, steps_.empty() ? 0 : steps_.rbegin()->first) + 1;
}

/// Groups without kept samples go to no step: they are settled when their turn comes.
void planner::settle_ended() {
  const auto has = [this](group_ref ref) { return log_->history().has(ref); };
  while (auto group = queue_.take_ended(has))
    end_group(std::move(*group), group->scored.end);
  if (ended_.empty() || finished_)
    return;
  log_settled record;
  for (const auto &one : ended_)
    record.groups.push_back(one.entry);
  crash_point("planner.settled.append");
  if (!write(record))
    return;
  crash_point("planner.settled.written");
  for (const auto &one : std::exchange(ended_, {}))
    unsettled_.push_back(one.ref);
}

/// @param judged_for the step that it was too old for
void planner::end_group(queued_group group, group_end end, std::uint64_t judged_for) {
  const auto &scored = group.scored;
  auto entry = group_entry(*scored.header, scored.annotations ? &**scored.annotations : nullptr,
                           scored.samples, end);
  entry.ordinal = group.ref.ordinal;
  entry.source = group.ref.source;
  entry.why = scored.why;
  entry.judged_for = judged_for;
  empty_.add(*scored.header, entry);
  ended_.push_back({group.ref, std::move(entry), std::move(group.assembler)});
}

/// What the next step finds too old ends now: no later step could want it.
void planner::judge_queue() {
  if (finished_ || ending())
    return;
  const auto step = next_step();
  for (auto &group : queue_.judge(step))
    end_group(std::move(group), group_end::settled, step);
  if (std::exchange(judged_in_, queue_.judged_in()) != queue_.judged_in())
    empty_.found();
}

/// A step of samples without a token to train gives as little as no step.
void planner::watch_step(const live_step &step) {
  const auto trains = [](const queued_group &group) {
    return std::ranges::any_of(group.scored.samples, [](const sample_record &sample) {
      return sample.outcome == sample_record::fate::packed && sample.trainable_in_seq_len > 0;
    });
  };
  if (std::ranges::any_of(step.groups, trains)) {
    empty_.cut(step.report.step);
    return;
  }
  for (const auto &group : step.groups)
    empty_.add(*group.scored.header, group_entry(*group.scored.header, &**group.scored.annotations,
                                                 group.scored.samples, group_end::settled));
  empty_.lost();
}

/// Data that gives nothing to train ends the run before all of it is spent.
void planner::watch_emptiness() {
  if (!finished_ && !ending() && !has_batch() && steps_.empty()) // steps under way end first
    stop_if_empty();
}

void planner::stop_if_empty() {
  if (const auto verdict = empty_.verdict()) {
    settle_ended();
    give_up(*verdict);
  }
}

/// Said once: what becomes of a last batch that the end of data leaves short.
void planner::say_last_batch() {
  if (queue_.empty() || ending() || !all_received() || queue_.has_batch() ||
      std::exchange(said_last_batch_, true))
    return;
  const bool ships = options_.batch.last == last_batch::ship;
  tell(supervisor_, run_note{fmt::format(
                        "data has ended: the last batch has {} of {} {}; {}", queue_.ready(),
                        queue_.target(), options_.batch.traces != 0 ? "traces" : "tokens",
                        ships ? "it is a step of its own (batch.last = ship)"
                              : "it is held, and nobody is trained on it (batch.last = hold)")});
}

/// Readers hear how far the run is whenever that changes.
void planner::tell_progress() {
  const planner_progress now{log_->history().trained(), next_step(),
                             queue_.backlog() / queue_.target()};
  counters_->version = now.version;
  counters_->next_step = now.step;
  counters_->backlog_steps = now.backlog_steps;
  if (std::exchange(told_progress_, now) == now)
    return;
  for (const auto &reader : readers_)
    if (reader)
      tell(reader, now);
}

} // namespace millrace
