// SPDX-License-Identifier: Apache-2.0
#include "actors/planner/planner.hpp"

#include <algorithm>
#include <utility>

#include "runtime/log.hpp"

namespace millrace {

planner::planner(caf::actor_config &config, const actor_context &context, planner_options options,
                 caf::actor supervisor, std::shared_ptr<run_counters> counters)
    : stage_actor(config, context, "planner"), options_(std::move(options)),
      supervisor_(std::move(supervisor)), counters_(std::move(counters)) {}

caf::behavior planner::make_behavior() {
  return {on(&planner::start),        on(&planner::take_scored), on(&planner::take_tombstone),
          on(&planner::take_wish),    on(&planner::take_end),    on(&planner::take_staged),
          on(&planner::take_trained), on(&planner::stop)};
}

void planner::on_exit() {
  peers_ = {};
  waiting_.clear();
  queue_.clear();
  steps_.clear();
}

void planner::start(const start_planner &in) {
  peers_ = in;
  started_ = true;
  pump();
}

void planner::take_scored(const group_scored &in) {
  receive(in.group, make_ready_group(in.header, in.annotations, options_.plan.seq_len),
          in.assembler);
}

void planner::take_tombstone(const group_tombstone &in) {
  const auto end =
      in.reason == tombstone_reason::expired ? group_end::expired : group_end::unscored;
  auto group = make_unready_group(in.header, end);
  if (group && ++counters_->tombstones <= most_warnings)
    log::warn("group {} ends outside a step: {}{}", key_of(*group->header->key()).text(), in.why,
              last_warning(counters_->tombstones));
  receive(in.group, std::move(group), in.assembler);
}

void planner::receive(group_ref ref, result<ready_group> group, const caf::actor &assembler) {
  if (!group) {
    give_up(group.error());
    return;
  }
  ++received_;
  backlog_traces_ += group->kept_traces;
  backlog_tokens_ += group->kept_tokens;
  queued_group queued{ref, std::move(*group), assembler};
  if (options_.deterministic)
    waiting_.emplace(ref, std::move(queued));
  else
    enqueue(std::move(queued));
  pump();
}

void planner::take_wish(const permit_wanted &in) {
  wishes_[in.reader] = in.ordinal;
  pump();
}

void planner::take_end(const source_ended &in) {
  ended_.insert(in.reader);
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
void planner::pump() {
  if (!started_ || finished_)
    return;
  while (!waiting_.empty() && waiting_.begin()->first.ordinal == next_ordinal_) {
    enqueue(std::move(waiting_.extract(waiting_.begin()).mapped()));
    ++next_ordinal_;
  }
  while (!finished_ && can_cut())
    cut_step();
  finish_if_done();
  if (!finished_)
    give_permits();
  counters_->backlog_traces = backlog_traces_;
}

/// A group without kept samples goes to no step: it is settled at once.
void planner::enqueue(queued_group group) {
  if (group.scored.samples.empty()) {
    enter(group, group.scored.end);
    send(group.assembler, groups_settled{{group.ref}});
    return;
  }
  queue_traces_ += group.scored.kept_traces;
  queue_tokens_ += group.scored.kept_tokens;
  queue_.push_back(std::move(group));
}

bool planner::all_received() const {
  return ended_.size() == options_.readers && received_ == source_groups_;
}

/// No step will be begun any more.
bool planner::ending() const {
  return stopping_ || (options_.max_steps != 0 && next_step_ > options_.max_steps);
}

bool planner::can_cut() const {
  if (ending() || queue_.empty() || steps_.size() > options_.limits.lookahead)
    return false;
  const bool full = options_.batch.traces != 0 ? queue_traces_ >= options_.batch.traces
                                               : queue_tokens_ >= options_.batch.tokens;
  return full || (all_received() && waiting_.empty() && options_.batch.last == last_batch::ship);
}

void planner::cut_step() {
  step_state step;
  std::uint64_t traces = 0;
  std::uint64_t tokens = 0;
  while (!queue_.empty() && (options_.batch.traces != 0 ? traces < options_.batch.traces
                                                        : tokens < options_.batch.tokens)) {
    traces += queue_.front().scored.kept_traces;
    tokens += queue_.front().scored.kept_tokens;
    step.groups.push_back(std::move(queue_.front()));
    queue_.pop_front();
  }
  queue_traces_ -= traces;
  queue_tokens_ -= tokens;
  backlog_traces_ -= traces;
  backlog_tokens_ -= tokens;
  step.report.groups = step.groups.size();
  step.report.traces = traces;
  start_step(std::move(step));
}

void planner::start_step(step_state step) {
  const stage_meter::timer timer(counters_->stages.pack);
  std::vector<ready_group *> groups;
  for (auto &group : step.groups)
    groups.push_back(&group.scored);
  auto bins = plan_groups(groups, options_.plan);
  if (!bins) {
    give_up(bins.error());
    return;
  }
  for (const auto &[sample, reason] : bins->plan.rejected) {
    const auto &group = *groups[bins->places[sample].group];
    log::warn("a sample of group {} rejected: {}", key_of(*group.header->key()).text(), reason);
  }
  if (bins->plan.ranks.empty() || bins->plan.ranks.front().empty()) {
    // Nothing of it is left to train: the groups end outside a step.
    for (const auto &group : step.groups)
      enter(group, group_end::settled);
    settle(step.groups);
    return;
  }
  step.report.step = next_step_++;
  for (const auto &rank : bins->plan.ranks)
    for (const auto &batch : rank) {
      ++step.report.micro_batches;
      step.report.dummies += batch.dummy ? 1 : 0;
      step.report.padding += batch.padding;
      for (const auto &piece : batch.pieces)
        if (!batch.dummy) {
          ++step.report.samples;
          step.report.tokens += piece.tokens;
        }
    }
  send_bins(step, *bins);
  ++counters_->steps_cut;
  steps_.emplace(step.report.step, std::move(step));
}

/// Whole ranks to one packer while there are enough ranks, else single bins.
void planner::send_bins(const step_state &step, const step_bins &bins) {
  std::vector<const ready_group *> groups;
  for (const auto &group : step.groups)
    groups.push_back(&group.scored);
  const auto packers = peers_.packers.size();
  std::size_t sent = 0;
  for (std::uint32_t rank = 0; rank < bins.plan.ranks.size(); ++rank) {
    const auto count = static_cast<std::uint32_t>(bins.plan.ranks[rank].size());
    send(peers_.feeders[rank], stage_step{step.report.step, count});
    for (std::uint32_t index = 0; index < count; ++index, ++sent) {
      auto encoded = encode_bin(bins, groups, step.report.step, rank, index);
      pack_bin job{std::move(encoded.plan), {}, peers_.feeders[rank]};
      for (auto g : encoded.groups)
        job.groups.push_back({step.groups[g].ref, step.groups[g].scored.annotations->bytes(),
                              step.groups[g].assembler});
      const auto whose = packers <= bins.plan.ranks.size() ? rank : sent;
      send(peers_.packers[whose % packers], std::move(job));
    }
  }
}

void planner::take_staged(const step_staged &in) {
  if (finished_)
    return;
  const auto found = steps_.find(in.step);
  MILLRACE_ASSERT(found != steps_.end(), "rank {} staged step {}", in.rank, in.step);
  found->second.staged.emplace(in.rank, in.digests);
  found->second.report.wire_bytes += in.wire_bytes;
  counters_->wire_bytes += in.wire_bytes;
  commit_ready();
}

/// Commits, in order, the steps that every rank has staged.
void planner::commit_ready() {
  for (auto &[number, step] : steps_) {
    if (step.committed)
      continue;
    if (step.staged.size() != peers_.feeders.size())
      return;
    std::vector<micro_batch_digest> digests;
    for (const auto &[rank, mine] : step.staged)
      digests.insert(digests.end(), mine.begin(), mine.end());
    step.report.digest = step_digest(digests);
    grid_hash_.add_step(number, std::move(digests));
    step.committed = true;
    for (const auto &feeder : peers_.feeders)
      send(feeder, commit_step{number, step.report.digest});
    settle(step.groups);
  }
}

/// Their bytes are in committed micro batches: assemblers need not hold them any more.
void planner::settle(const std::vector<queued_group> &groups) {
  std::map<caf::actor, groups_settled> by_assembler;
  for (const auto &group : groups)
    by_assembler[group.assembler].groups.push_back(group.ref);
  for (auto &[assembler, settled] : by_assembler)
    send(assembler, std::move(settled));
}

void planner::enter(const queued_group &group, group_end end) {
  const auto &scored = group.scored;
  ledger_->add_group(*scored.header, scored.annotations ? &**scored.annotations : nullptr,
                     scored.samples, end);
}

void planner::take_trained(const step_trained &in) {
  if (finished_)
    return;
  const auto found = steps_.find(in.step);
  MILLRACE_ASSERT(found != steps_.end(), "rank {} trained step {}", in.rank, in.step);
  auto &step = found->second;
  step.trained.insert(in.rank);
  step.report.totals = in.totals;
  if (step.trained.size() != peers_.feeders.size())
    return;
  for (const auto &group : step.groups)
    enter(group, group_end::settled);
  ++counters_->steps_trained;
  send(supervisor_, step_done{step.report});
  steps_.erase(found);
  pump();
}

bool planner::hungry() const {
  const auto beyond =
      std::ranges::count_if(steps_, [](const auto &step) { return !step.second.committed; });
  return beyond == 0 && steps_.size() <= 1;
}

void planner::give_permits() {
  if (ending())
    return;
  const auto target = options_.batch.traces != 0 ? options_.batch.traces : options_.batch.tokens;
  const auto backlog = options_.batch.traces != 0 ? backlog_traces_ : backlog_tokens_;
  auto below = permitted_below_;
  if (backlog / target < options_.limits.max_backlog_steps &&
      counters_->memory->held <= options_.memory_limit)
    below = std::max(below, received_ + options_.limits.max_open_groups);
  if (hungry())
    for (const auto &[reader, ordinal] : wishes_)
      below = std::max(below, ordinal + 1);
  std::erase_if(wishes_, [below](const auto &wish) { return wish.second < below; });
  if (below == permitted_below_)
    return;
  permitted_below_ = below;
  for (const auto &reader : peers_.readers)
    send(reader, permit{below});
}

void planner::finish_if_done() {
  const bool nothing_to_come = ending() || (all_received() && !can_cut());
  if (!nothing_to_come || !steps_.empty())
    return;
  finished_ = true;
  for (const auto &group : queue_)
    enter(group, group_end::held);
  for (const auto &[ref, group] : waiting_)
    enter(group, group.scored.samples.empty() ? group.scored.end : group_end::held);
  send(supervisor_, run_finished{ledger_, grid_hash_.value(), all_received()});
}

void planner::give_up(const error &why) {
  finished_ = true;
  send(supervisor_, run_failed{name(), why});
}

} // namespace millrace
