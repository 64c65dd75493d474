// SPDX-License-Identifier: Apache-2.0
// The trainer's jobs, and what they need of the log.
#include <algorithm>
#include <utility>

#include "actors/planner/planner.hpp"
#include "runtime/crash_point.hpp"
#include "runtime/log.hpp"

namespace millrace {

namespace {

/// So long may what nobody waits for stay unsynced.
constexpr std::chrono::milliseconds flush_within{20};
/// A full disk is tried again so often.
constexpr std::chrono::seconds retry_pause{1};

} // namespace

void planner::take_state(const rank_state &in) {
  if (finished_)
    return;
  if (auto taken = ranks_.take(in, log_->history()); !taken) {
    give_up(taken.error());
    return;
  }
  crash_point("planner.state.taken");
  pump();
}

void planner::take_saved(const checkpoint_saved &in) {
  if (finished_)
    return;
  ranks_.note_saved(in);
  crash_point("planner.saved.taken");
  pump();
}

/// What the ranks have said decides whether they are one job.
void planner::lead_ranks() {
  if (finished_ || no_space_)
    return;
  const auto verdict = ranks_.judge(log_->history());
  if (!verdict) {
    give_up(verdict.error());
    return;
  }
  switch (*verdict) {
  case rank_board::verdict::wait:
    return;
  case rank_board::verdict::begin:
    begin_job();
    return;
  case rank_board::verdict::adopt:
    adopt_job();
    return;
  case rank_board::verdict::disperse:
    for (const auto &feeder : ranks_.strays())
      tell(feeder,
           end_generation{log_->history().generation(), "other ranks have started again", claim()});
    ranks_.forget_strays();
    return;
  }
}

/// Writes the new generation down, then tells the ranks. They answer, and are adopted.
bool planner::begin_job() {
  const auto next = ranks_.next();
  const auto &log = log_->history();
  if (!catch_up(next - 1) || !roll_back(next))
    return false;
  const auto generation = log.generation() + 1;
  crash_point("planner.generation.append");
  if (!write(log_generation{generation, next}) || !sync())
    return false;
  crash_point("planner.generation.synced");
  flush({});
  if (generation > 1)
    log::info("the trainer's ranks begin generation {} at step {}", generation, next);
  notices_.clear();
  ranks_.hear_again();
  for (const auto &feeder : ranks_.feeders()) {
    tell(feeder, begin_generation{generation, next, claim()});
    tell(feeder, hello());
    crash_point("planner.generation.sent");
  }
  for (const auto &one : packers_)
    tell(one.who, hello());
  return true;
}

/// All ranks have a checkpoint of `step`: so it was trained everywhere, whether they could say it
/// or not.
bool planner::catch_up(std::uint64_t step) {
  const auto &log = log_->history();
  while (log.trained() < step) {
    if (!write(log_trained{log.trained() + 1, 0, 0, 0}))
      return false;
    ++counters_->steps_trained;
  }
  return step <= log.durable() || write(log_durable{step});
}

/// Without steps.keep = durable, what no checkpoint holds is lost, and said to be.
bool planner::roll_back(std::uint64_t next) {
  const auto &log = log_->history();
  if (options_.keep != step_keep::trained || log.committed() < next)
    return true;
  const log_rolled_back record{next, log.committed(), log.trained()};
  crash_point("planner.rolled_back.append");
  if (!write(record) || !sync())
    return false;
  crash_point("planner.rolled_back.synced");
  if (record.trained >= record.first)
    log::warn("steps {} to {} are rolled back: the trainer starts again at step {}, and what it "
              "had trained since its last checkpoint is lost (steps.keep = trained)",
              record.first, record.trained, next);
  if (record.last > record.trained)
    log::warn("steps {} to {} were committed and not trained: their groups are used anew",
              std::max(record.first, record.trained + 1), record.last);
  for (auto ref : log_->history().take_freed()) {
    received_.erase(ref);
    queue_.turn_back(ref.ordinal);
    freed_.insert(ref);
  }
  ask_for({freed_.begin(), freed_.end()}, false);
  counters_->steps_trained = log.trained();
  return true;
}

/// The ranks are the job of the log: works out what each of them lacks. What they have trained they
/// know themselves: the log may call a step trained that an earlier job has trained, and this one
/// makes again.
void planner::adopt_job() {
  const auto &log = log_->history();
  ranks_.run();
  auto first = log.trained() + 1;
  for (std::uint32_t rank = 0; rank < ranks_.count(); ++rank)
    first = std::min(first, ranks_.state(rank).trained_to + 1);
  for (auto number = first; number <= log.committed(); ++number) {
    auto &step = steps_[number];
    step = {};
    step.committed = true;
    step.report = log.report(number);
    for (std::uint32_t rank = 0; rank < ranks_.count(); ++rank) {
      const auto &said = ranks_.state(rank);
      if (said.next <= number)
        step.lacking.insert(rank);
      else if (number <= said.trained_to)
        step.trained.insert(rank);
      const auto trained = std::ranges::find(said.trained, number, &step_totals::step);
      if (trained != said.trained.end())
        step.report.totals = trained->totals;
    }
  }
  crash_point("planner.job.adopted");
  told_trained_ = told_durable_ = UINT64_MAX; // they are to hear it in any case
  if (!std::exchange(flush_due_, true))
    delayed_send(this, flush_within, flush_log{});
}

/// A rank is gone: the others cannot go on, and what they had staged is gone with them.
void planner::end_job(const std::string &why) {
  log::warn("the trainer's ranks start again: {}", why);
  if (options_.restarts) // else the run ends
    for (const auto &feeder : ranks_.feeders())
      tell(feeder, end_generation{log_->history().generation(), why, claim()});
  ranks_.hear_again();
  for (auto at = steps_.rbegin(); at != steps_.rend(); ++at)
    if (!at->second.committed)
      queue_.put_back(std::move(at->second.groups));
  steps_.clear();
}

/// Asks for the bytes of steps that some ranks lack, a few at a time.
void planner::make_again() {
  if (!ranks_.running() || finished_)
    return;
  std::uint32_t ahead = 0;
  for (auto &[number, step] : steps_) {
    if (step.lacking.empty())
      continue;
    if (ahead++ > options_.limits.lookahead)
      return;
    if (std::exchange(step.asked_for, true))
      continue;
    const auto *record = log_->history().commit(number);
    if (record == nullptr) {
      give_up({errc::conflict, fmt::format("step {} is needed again, and is not kept", number)});
      return;
    }
    if (auto added = add_bins_again(step, *record, ranks_.feeders(), claim()); !added) {
      give_up(added.error());
      return;
    }
    crash_point("planner.again.begin");
    for (auto rank : step.lacking)
      tell(ranks_.feeder(rank), stage_step{number,
                                           static_cast<std::uint32_t>(std::ranges::count(
                                               record->bins, rank, &log_bin::rank)),
                                           claim()});
    std::vector<group_ref> groups;
    for (const auto &group : record->groups)
      groups.push_back({group.ordinal, group.source});
    ask_for(groups, true);
    crash_point("planner.again.asked");
    give_orphans();
  }
}

/// The run ends with a checkpoint: else the steps since the last one would be lost to the trainer.
void planner::ask_last_checkpoint() {
  const auto &log = log_->history();
  if (!options_.checkpoints || !ranks_.running() || log.durable() == log.committed() ||
      std::exchange(asked_checkpoint_, log.generation()) == log.generation())
    return;
  crash_point("planner.last_checkpoint.ask");
  for (const auto &feeder : ranks_.feeders())
    tell(feeder, finish_training{log.committed(), claim()});
}

void planner::record_durable() {
  const auto &log = log_->history();
  const auto saved = std::min(ranks_.saved(), log.trained());
  if (!ranks_.running() || saved <= log.durable())
    return;
  crash_point("planner.durable.append");
  if (write(log_durable{saved}))
    crash_point("planner.durable.written");
}

/// Appends to the log. False: not now (no space: it is tried again by pump()), or never.
bool planner::write(const log_record &record) {
  if (finished_ || no_space_)
    return false;
  const auto written = log_->write(record);
  if (written) {
    if (std::exchange(said_no_space_, false))
      log::info("there is space for the log again");
    if (!std::exchange(flush_due_, true))
      delayed_send(this, flush_within, flush_log{});
    return true;
  }
  if (written.error().code != errc::no_space) {
    give_up(written.error());
    return false;
  }
  no_space_ = true;
  if (!std::exchange(said_no_space_, true))
    log::error("{}: nothing new is taken in until there is space", written.error().message);
  delayed_send(this, retry_pause, retry_write{});
  return false;
}

bool planner::sync() {
  if (auto synced = log_->sync(); !synced) {
    give_up(synced.error());
    return false;
  }
  return true;
}

void planner::retry(const retry_write &) {
  no_space_ = false;
  pump();
}

/// Syncs what was written, and tells what rests on it.
void planner::flush(const flush_log &) {
  flush_due_ = false;
  if (finished_ || !sync())
    return;
  crash_point("planner.log.flushed");
  const auto &log = log_->history();
  settle(std::exchange(unsettled_, {}), true);
  for (const auto &one : std::exchange(unanswered_, {}))
    answer_settled(one);
  const auto no_more = log_->history().take_final();
  if (options_.journals)
    settle(no_more, true);
  else
    tell_readers(no_more, true);
  if (log.trained() != told_trained_ || log.durable() != told_durable_) {
    told_trained_ = log.trained();
    told_durable_ = log.durable();
    for (const auto &feeder : ranks_.feeders())
      tell(feeder, steps_recorded{told_trained_, told_durable_, claim()});
    crash_point("planner.recorded.sent");
  }
}

} // namespace millrace
