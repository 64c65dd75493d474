// SPDX-License-Identifier: Apache-2.0
#include "actors/planner/planner.hpp"

#include <algorithm>
#include <utility>

#include "runtime/crash_point.hpp"
#include "runtime/log.hpp"

namespace millrace {

namespace {

group_end end_of(tombstone_reason reason) {
  switch (reason) {
  case tombstone_reason::expired:
    return group_end::expired;
  case tombstone_reason::unscored:
    return group_end::unscored;
  case tombstone_reason::stale:
    return group_end::stale;
  case tombstone_reason::dropped:
    return group_end::dropped;
  case tombstone_reason::overdue:
    return group_end::overdue;
  }
  return group_end::unscored;
}

} // namespace

planner::planner(caf::actor_config &config, const actor_context &context, planner_options options,
                 std::unique_ptr<run_log> log, peer supervisor,
                 std::shared_ptr<run_counters> counters)
    : stage_actor(config, context, "planner"), options_(std::move(options)), log_(std::move(log)),
      supervisor_(std::move(supervisor)), counters_(std::move(counters)),
      ranks_(options_.plan.ranks),
      queue_(options_.batch, options_.deterministic, options_.staleness),
      turns_(options_.deterministic),
      empty_(options_.batch, options_.limits.max_empty_batches, options_.plan.seq_len),
      received_(log_->history().groups()) {
  for (auto ref : log_->history().take_freed())
    if (!log_->history().has(ref))
      freed_.insert(ref);
  counters_->steps_cut = log_->history().committed();
  counters_->steps_trained = log_->history().trained();
}

caf::behavior planner::make_behavior() {
  return {on(&planner::take_wanted), on(&planner::take_scored),  on(&planner::take_tombstone),
          on(&planner::take_held),   on(&planner::take_wish),    on(&planner::take_end),
          on(&planner::take_staged), on(&planner::take_trained), on(&planner::take_state),
          on(&planner::take_saved),  on(&planner::take_refusal), on(&planner::stop),
          on(&planner::take_up),     on(&planner::take_down),    on(&planner::take_draining),
          on(&planner::hear),        on(&planner::flush),        on(&planner::retry)};
}

void planner::on_exit() {
  readers_.clear();
  assemblers_.clear();
  gone_.clear();
  packers_.clear();
  ranks_.clear();
  queue_.clear();
  ended_.clear();
  turns_.clear();
  unlogged_.clear();
  unanswered_.clear();
  steps_.clear();
  log_.reset(); // whoever starts next may open it
}

void planner::take_tombstone(const group_tombstone &in) {
  auto group = make_unready_group(in.header, end_of(in.reason));
  if (log_->history().has(in.group)) { // it offers no bytes
    tell(in.assembler, groups_received{{in.group}});
    answer_settled({in.group, in.assembler});
    return;
  }
  if (received_.contains(in.group)) { // said twice, or a copy elsewhere was complete
    tell(in.assembler, groups_received{{in.group}});
    ++counters_->repeats;
    return;
  }
  if (group) {
    group->why = in.why;
    if (++counters_->tombstones <= most_warnings)
      log::warn("group {} ends outside a step: {}{}", key_of(*group->header->key()).text(), in.why,
                last_warning(counters_->tombstones));
  }
  receive(in.group, std::move(group), in.assembler);
}

void planner::receive(group_ref ref, result<ready_group> group, const peer &assembler) {
  take_in(ref, std::move(group), assembler);
  pump();
}

void planner::take_in(group_ref ref, result<ready_group> group, const peer &assembler) {
  if (finished_)
    return;
  turns_.finish(ref);
  if (!group) {
    give_up(group.error());
    return;
  }
  if (const auto found = group->header->ordinal(); found != ref.ordinal) {
    give_up({errc::conflict, fmt::format("what came for group {} is group {} ({})", ref.ordinal,
                                         key_of(*group->header->key()).text(), found)});
    return;
  }
  tell(assembler, groups_received{{ref}});
  freed_.erase(ref);
  if (!received_.insert(ref)) {
    receive_again(ref, assembler);
    return;
  }
  queue_.add({ref, std::move(*group), assembler});
}

/// A group that is here comes again when its scorer or its assembler was lost, or somebody started
/// again: the work was done twice, with the same result. If its bytes are with another assembler
/// now, packers must know.
void planner::receive_again(group_ref ref, const peer &assembler) {
  ++counters_->repeats;
  if (gone_.contains(assembler))
    return; // late: another may have said before that it has the group now
  if (auto *queued = queue_.find(ref); queued != nullptr) {
    queued->assembler = assembler;
    return;
  }
  for (auto &one : ended_)
    if (one.ref == ref) {
      one.assembler = assembler;
      return;
    }
  for (auto &[number, step] : steps_)
    for (auto &group : step.groups)
      if (group.ref == ref) {
        group.assembler = assembler;
        for (const auto *order : locate(step, ref, assembler))
          tell(order->packer, order->order);
        return;
      }
  take_held({ref, assembler});
}

/// Bytes of a group that has its end in the log: a step may have asked for them.
void planner::take_held(const group_held &in) {
  if (gone_.contains(in.assembler))
    return;
  for (auto &[number, step] : steps_) {
    const auto wanted = std::ranges::any_of(step.bins, [&](const auto &bin) {
      return std::ranges::any_of(bin.second.order.groups,
                                 [&](const auto &group) { return group.group == in.group; });
    });
    if (!step.committed || !wanted)
      continue;
    step.places[in.group] = in.assembler;
    for (const auto *order : locate(step, in.group, in.assembler))
      tell(order->packer, order->order);
    give_orphans();
    return;
  }
  if (log_->history().has(in.group))
    answer_settled(in);
}

/// What it has its end from must be on the disk.
void planner::answer_settled(const group_held &in) {
  if (!log_->synced()) {
    unanswered_.push_back(in);
    return;
  }
  const bool for_good = log_->history().is_settled(in.group);
  tell_settled(in.assembler, {in.group}, for_good);
  tell_readers({in.group}, for_good);
}

void planner::take_wish(const permit_wanted &in) {
  wishes_[in.reader] = in.ordinal;
  pump();
}

void planner::take_end(const source_ended &in) {
  ended_readers_.insert(in.reader);
  source_groups_ = in.groups;
  wishes_.erase(in.reader);
  pump();
}

void planner::stop(const stop_run &in) {
  log::warn("stopping: {}", in.why);
  stopping_ = true;
  pump();
}

/// Everything that new information may make possible, in an order in which one pass is enough.
/// What the log had no space for is tried again here, too.
void planner::pump() {
  if (finished_)
    return;
  log_answers();
  settle_ended();
  lead_ranks();
  commit_ready();
  record_trained();
  record_durable();
  make_again();
  judge_queue();
  while (!finished_ && can_cut()) {
    cut_step();
    judge_queue();
  }
  settle_ended();
  watch_emptiness();
  finish_if_done();
  if (!finished_) {
    give_turns();
    give_permits();
  }
  tell_hunger();
  show_wait();
  tell_progress();
  counters_->backlog_traces = queue_.backlog_traces();
}

bool planner::all_received() const {
  return ended_readers_.size() == options_.readers && received_.size() >= source_groups_;
}

/// No step will be begun any more.
bool planner::ending() const {
  return stopping_ || (options_.max_steps != 0 && next_step() > options_.max_steps);
}

/// The queue has what a step takes.
bool planner::has_batch() const {
  if (ending() || queue_.empty())
    return false;
  return queue_.has_batch() ||
         (all_received() && queue_.all_ready() && options_.batch.last == last_batch::ship);
}

/// A step is made again from groups that lie further on in the source.
bool planner::waits_for_bytes() const {
  return std::ranges::any_of(steps_, [](const auto &step) {
    return step.second.committed && millrace::waits_for_bytes(step.second);
  });
}

/// A whole batch waits for packers or ranks: more data would only fill memory.
bool planner::hungry() const {
  if (waits_for_bytes())
    return true;
  if (has_batch())
    return false;
  const auto beyond =
      std::ranges::count_if(steps_, [](const auto &step) { return !step.second.committed; });
  return beyond == 0 && steps_.size() <= 1;
}

void planner::tell_hunger() {
  const bool now = !finished_ && (!ending() || waits_for_bytes()) && hungry();
  if (now == told_hungry_)
    return;
  told_hungry_ = now;
  for (const auto &reader : readers_)
    if (reader)
      tell(reader, hunger{now});
  tell(supervisor_, hunger{now});
}

void planner::give_permits() {
  if ((ending() && !waits_for_bytes()) || no_space_)
    return;
  auto below = permitted_below_;
  if (queue_.backlog() / queue_.target() < options_.limits.max_backlog_steps &&
      counters_->memory->held <= options_.memory_limit)
    below = std::max(below, received_.size() + options_.limits.max_open_groups);
  if (hungry())
    for (const auto &[reader, ordinal] : wishes_)
      below = std::max(below, ordinal + 1);
  std::erase_if(wishes_, [below](const auto &wish) { return wish.second < below; });
  if (below == permitted_below_)
    return;
  permitted_below_ = below;
  for (const auto &reader : readers_)
    if (reader)
      tell(reader, permit{below});
}

/// No step is under way, and none will come.
bool planner::nothing_to_come() const {
  const auto &log = log_->history();
  return (ending() || (all_received() && !has_batch())) && steps_.empty() && ended_.empty() &&
         log.trained() == log.committed();
}

void planner::finish_if_done() {
  if (finished_ || !nothing_to_come())
    return;
  ask_last_checkpoint();
  if (options_.checkpoints && log_->history().durable() < log_->history().committed())
    return;
  flush({});
  if (finished_)
    return;
  say_last_batch();
  finished_ = true;
  auto entries = std::make_shared<ledger>(log_->history().entries());
  queue_.for_each([&entries](const queued_group &group) {
    const auto &scored = group.scored;
    entries->add(group_entry(*scored.header, scored.annotations ? &**scored.annotations : nullptr,
                             scored.samples,
                             scored.samples.empty() ? scored.end : group_end::held));
  });
  crash_point("planner.run.finished");
  tell(supervisor_, run_finished{std::move(entries), log_->history().grid_hash(),
                                 log_->history().reports(), all_received()});
}

void planner::give_up(const error &why) {
  if (std::exchange(finished_, true))
    return;
  tell(supervisor_, run_failed{name(), why});
}

/// What the step that is needed next waits for.
void planner::show_wait() {
  auto &waits = *counters_->waits;
  if (no_space_) {
    waits.set(name(), "disk", "space for STATE/planner.log: nothing new is taken in", "");
    return;
  }
  for (const auto &[number, step] : steps_)
    if (!step.committed || !step.lacking.empty() || step.trained.size() < ranks_.count()) {
      show_step_wait(number, step);
      return;
    }
  if (finished_)
    waits.clear(name());
  else if (ranks_.running() && nothing_to_come())
    waits.set(name(), "last checkpoint", "the ranks to save their last checkpoint", "trainer");
  else if (!ranks_.running() && (has_batch() || nothing_to_come()))
    show_rank_wait();
  else
    show_batch_wait();
}

void planner::show_step_wait(std::uint64_t number, const live_step &step) {
  if (!ranks_.running()) {
    show_rank_wait();
    return;
  }
  std::uint32_t rank = 0;
  if (!step.lacking.empty()) {
    rank = *step.lacking.begin();
    counters_->waits->set(name(), fmt::format("again {} {}", number, rank),
                          fmt::format("rank {} to stage step {} again", rank, number),
                          fmt::format("feeder-{}", rank));
    return;
  }
  const auto has = [&](std::uint32_t one) {
    return step.committed ? step.trained.contains(one) : step.staged.contains(one);
  };
  while (rank + 1 < ranks_.count() && has(rank))
    ++rank;
  counters_->waits->set(
      name(), fmt::format("{} {} {}", step.committed ? "trained" : "staged", number, rank),
      fmt::format("rank {} to {} step {}", rank, step.committed ? "train" : "stage", number),
      fmt::format("{}-{}", step.committed ? "trainer" : "feeder", rank));
}

void planner::show_rank_wait() {
  const auto rank = ranks_.missing();
  if (rank < ranks_.count())
    counters_->waits->set(name(), fmt::format("rank {}", rank),
                          fmt::format("rank {} of {} to register", rank, ranks_.count()),
                          fmt::format("feeder-{}", rank));
  else
    counters_->waits->set(name(), "ranks", "the ranks to become one job", "trainer");
}

void planner::show_batch_wait() {
  auto &waits = *counters_->waits;
  if (has_batch()) {
    waits.set(name(), "a packer", "a packer", "packer");
    return;
  }
  const auto number = next_step();
  waits.set(name(), fmt::format("batch {}", number),
            fmt::format("has {}/{} {} of step {}", queue_.ready(), queue_.target(),
                        options_.batch.traces != 0 ? "traces" : "tokens", number),
            "assembler");
}

} // namespace millrace
