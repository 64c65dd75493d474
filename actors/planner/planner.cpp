// SPDX-License-Identifier: Apache-2.0
#include "actors/planner/planner.hpp"

#include <algorithm>
#include <utility>

#include "runtime/log.hpp"

namespace millrace {

planner::planner(caf::actor_config &config, const actor_context &context, planner_options options,
                 peer supervisor, std::shared_ptr<run_counters> counters)
    : stage_actor(config, context, "planner"), options_(std::move(options)),
      supervisor_(std::move(supervisor)), counters_(std::move(counters)) {}

caf::behavior planner::make_behavior() {
  return {on(&planner::take_scored), on(&planner::take_tombstone),
          on(&planner::take_wish),   on(&planner::take_end),
          on(&planner::take_staged), on(&planner::take_trained),
          on(&planner::stop),        on(&planner::take_up),
          on(&planner::take_down),   on(&planner::take_draining),
          on(&planner::hear)};
}

void planner::on_exit() {
  readers_.clear();
  packers_.clear();
  feeders_.clear();
  waiting_.clear();
  queue_.clear();
  steps_.clear();
}

void planner::take_up(const peer_up &in) {
  const auto place = number_in(in.who.id().name);
  const auto put = [&](std::vector<peer> &list, std::uint32_t size) {
    list.resize(size);
    if (place && *place < size)
      list[*place] = in.who;
    else
      give_up({errc::bad_value,
               fmt::format("{} is none of the {} that the config has", in.who.id().name, size)});
  };
  if (in.what == role::env_reader) {
    put(readers_, options_.readers);
    tell(in.who, permit{permitted_below_});
    tell(in.who, hunger{told_hungry_});
  } else if (in.what == role::trainer) {
    put(feeders_, options_.plan.ranks);
    for (const auto &notice : notices_)
      tell(in.who, notice);
  } else if (in.what == role::packer) {
    packers_.push_back({in.who});
    give_orphans();
  }
  pump();
}

void planner::take_draining(const peer_draining &in) {
  for (auto &one : packers_)
    one.draining = one.draining || one.who == in.who;
}

/// What a packer had and no feeder has staged is gathered by another.
void planner::take_down(const peer_down &in) {
  if (in.what != role::packer)
    return;
  std::erase_if(packers_, [&](const auto &one) { return one.who == in.who; });
  for (auto &[number, step] : steps_)
    for (auto &[bin, order] : step.bins)
      if (order.packer && order.packer == in.who)
        order.packer = {};
  give_orphans();
}

/// The ranks tell each other where they are.
void planner::hear(const rank_notice &in) {
  notices_.push_back(in);
  for (const auto &feeder : feeders_)
    if (feeder)
      tell(feeder, in);
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

void planner::receive(group_ref ref, result<ready_group> group, const peer &assembler) {
  if (!group) {
    give_up(group.error());
    return;
  }
  tell(assembler, groups_received{{ref}});
  if (!received_.insert(ref).second) {
    receive_again(ref, assembler);
    return;
  }
  backlog_traces_ += group->kept_traces;
  backlog_tokens_ += group->kept_tokens;
  queued_group queued{ref, std::move(*group), assembler};
  if (options_.deterministic)
    waiting_.emplace(ref, std::move(queued));
  else
    enqueue(std::move(queued));
  pump();
}

/// A group that is here comes again when its scorer or its assembler was lost: the work was done
/// twice, with the same result. If its bytes are with another assembler now, packers must know.
void planner::receive_again(group_ref ref, const peer &assembler) {
  ++counters_->repeats;
  for (auto &[number, step] : steps_)
    for (auto &group : step.groups)
      if (group.ref == ref) {
        if (step.committed)
          tell_settled(assembler, {ref});
        else if (group.assembler != assembler)
          relocate(step, ref, group.assembler = assembler);
        return;
      }
  if (auto *waiting = find(ref); waiting != nullptr)
    waiting->assembler = assembler;
  else
    tell_settled(assembler, {ref});
}

void planner::relocate(step_state &step, group_ref ref, const peer &assembler) {
  for (auto &[bin, order] : step.bins) {
    bool moved = false;
    for (auto &group : order.order.groups)
      if (group.group == ref) {
        group.assembler = assembler;
        moved = true;
      }
    if (moved && order.packer)
      tell(order.packer, order.order);
  }
}

/// A group that waits for a step.
planner::queued_group *planner::find(group_ref ref) {
  if (const auto found = waiting_.find(ref); found != waiting_.end())
    return &found->second;
  const auto found = std::ranges::find(queue_, ref, &queued_group::ref);
  return found == queue_.end() ? nullptr : &*found;
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
  if (finished_)
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
  tell_hunger();
  show_wait();
  counters_->backlog_traces = backlog_traces_;
}

/// A group without kept samples goes to no step: it is settled at once.
void planner::enqueue(queued_group group) {
  if (group.scored.samples.empty()) {
    enter(group, group.scored.end);
    settle({std::move(group)});
    return;
  }
  queue_traces_ += group.scored.kept_traces;
  queue_tokens_ += group.scored.kept_tokens;
  queue_.push_back(std::move(group));
}

bool planner::all_received() const {
  return ended_.size() == options_.readers && received_.size() == source_groups_;
}

/// No step will be begun any more.
bool planner::ending() const {
  return stopping_ || (options_.max_steps != 0 && next_step_ > options_.max_steps);
}

/// Somebody gathers, and every rank is there.
bool planner::ready_to_pack() const {
  return feeders_.size() == options_.plan.ranks &&
         std::ranges::all_of(feeders_, [](const auto &one) { return bool{one}; }) &&
         std::ranges::any_of(packers_, [](const auto &one) { return !one.draining; });
}

bool planner::can_cut() const {
  return has_batch() && steps_.size() <= options_.limits.lookahead && ready_to_pack();
}

/// The queue has what a step takes.
bool planner::has_batch() const {
  if (ending() || queue_.empty())
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
  if (step.report.step == 1)
    step.report.assemblers_must_carry = assemblers_must_carry(step);
  ++counters_->steps_cut;
  send_bins(steps_.emplace(step.report.step, std::move(step)).first->second, *bins);
}

/// Whole ranks to one packer while there are enough ranks, else single bins.
void planner::send_bins(step_state &step, const step_bins &bins) {
  std::vector<const ready_group *> groups;
  for (const auto &group : step.groups)
    groups.push_back(&group.scored);
  for (std::uint32_t rank = 0; rank < bins.plan.ranks.size(); ++rank) {
    const auto count = static_cast<std::uint32_t>(bins.plan.ranks[rank].size());
    tell(feeders_[rank], stage_step{step.report.step, count});
    for (std::uint32_t index = 0; index < count; ++index) {
      auto encoded = encode_bin(bins, groups, step.report.step, rank, index);
      pack_bin job{std::move(encoded.plan), {}, feeders_[rank], encoded.source_bytes};
      for (auto g : encoded.groups)
        job.groups.push_back({step.groups[g].ref, step.groups[g].scored.annotations->bytes(),
                              step.groups[g].assembler});
      step.bins.emplace(bin_ref{step.report.step, rank, index}, bin_order{std::move(job), {}});
    }
  }
  give_orphans();
}

/// The steps under way, one that is collected, one that is trained, and the groups begun.
std::uint64_t planner::assemblers_must_carry(const step_state &step) const {
  std::uint64_t bytes = 0;
  for (const auto &group : step.groups)
    for (const auto *episode : *group.scored.header->episodes())
      bytes += episode->bytes();
  return (options_.limits.lookahead + 2) * bytes +
         bytes / step.groups.size() * options_.limits.max_open_groups;
}

/// Gives the bins that no packer has: whole ranks to one packer while there are enough ranks.
void planner::give_orphans() {
  std::vector<peer> usable;
  for (const auto &one : packers_)
    if (!one.draining)
      usable.push_back(one.who);
  if (usable.empty())
    return;
  std::size_t given = 0;
  for (auto &[number, step] : steps_)
    for (auto &[bin, order] : step.bins)
      if (!order.packer) {
        const auto whose = usable.size() <= options_.plan.ranks ? bin.rank : given++;
        order.packer = usable[whose % usable.size()];
        tell(order.packer, order.order);
      }
}

void planner::take_staged(const step_staged &in) {
  if (finished_)
    return;
  const auto found = steps_.find(in.step);
  if (found == steps_.end() || in.rank >= feeders_.size() || !are_planned(found->second, in) ||
      !found->second.staged.emplace(in.rank, in.digests).second) {
    give_up({errc::conflict,
             fmt::format("rank {} staged step {}, which is not to be staged", in.rank, in.step)});
    return;
  }
  std::erase_if(found->second.bins, [&](const auto &bin) { return bin.first.rank == in.rank; });
  found->second.report.wire_bytes += in.wire_bytes;
  counters_->wire_bytes += in.wire_bytes;
  commit_ready();
  pump();
}

/// Whether a rank has staged the micro batches that it was given, and no others.
bool planner::are_planned(const step_state &step, const step_staged &in) {
  const auto mine =
      std::ranges::count_if(step.bins, [&](const auto &bin) { return bin.first.rank == in.rank; });
  std::uint32_t index = 0;
  return std::cmp_equal(in.digests.size(), mine) &&
         std::ranges::all_of(in.digests, [&](const auto &one) {
           return one.rank == in.rank && one.index == index++;
         });
}

/// Commits, in order, the steps that every rank has staged.
void planner::commit_ready() {
  for (auto &[number, step] : steps_) {
    if (step.committed)
      continue;
    if (step.staged.size() != feeders_.size())
      return;
    std::vector<micro_batch_digest> digests;
    for (const auto &[rank, mine] : step.staged)
      digests.insert(digests.end(), mine.begin(), mine.end());
    step.report.digest = step_digest(digests);
    grid_hash_.add_step(number, std::move(digests));
    step.committed = true;
    for (const auto &feeder : feeders_)
      tell(feeder, commit_step{number, step.report.digest});
    settle(step.groups);
  }
}

/// Their bytes are in committed micro batches: assemblers need not hold them any more.
void planner::settle(const std::vector<queued_group> &groups) {
  std::map<peer, std::vector<group_ref>> by_peer;
  for (const auto &group : groups) {
    by_peer[group.assembler].push_back(group.ref);
    const auto reader = group.ref.ordinal % options_.readers;
    if (reader < readers_.size() && readers_[reader])
      by_peer[readers_[reader]].push_back(group.ref);
  }
  for (auto &[whom, refs] : by_peer)
    tell_settled(whom, std::move(refs));
}

void planner::tell_settled(const peer &whom, std::vector<group_ref> groups) {
  for (std::size_t at = 0; at < groups.size(); at += groups_settled::most_refs) {
    const auto end = std::min(groups.size(), at + groups_settled::most_refs);
    tell(whom, groups_settled{{groups.begin() + static_cast<std::ptrdiff_t>(at),
                               groups.begin() + static_cast<std::ptrdiff_t>(end)}});
  }
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
  if (found == steps_.end() || !found->second.committed || in.rank >= feeders_.size()) {
    give_up({errc::conflict,
             fmt::format("rank {} trained step {}, which is not committed", in.rank, in.step)});
    return;
  }
  auto &step = found->second;
  step.trained.insert(in.rank);
  step.report.totals = in.totals;
  if (step.trained.size() != feeders_.size())
    return;
  for (const auto &group : step.groups)
    enter(group, group_end::settled);
  ++counters_->steps_trained;
  tell(supervisor_, step_done{step.report});
  steps_.erase(found);
  pump();
}

/// A whole batch waits for packers or ranks: more data would only fill memory.
bool planner::hungry() const {
  if (has_batch())
    return false;
  const auto beyond =
      std::ranges::count_if(steps_, [](const auto &step) { return !step.second.committed; });
  return beyond == 0 && steps_.size() <= 1;
}

/// What the step that is needed next waits for.
void planner::show_wait() {
  auto &waits = *counters_->waits;
  const auto missing = [&](const auto &have) {
    std::uint32_t rank = 0;
    while (have(rank))
      ++rank;
    return rank;
  };
  for (const auto &[number, step] : steps_) {
    if (step.committed && step.trained.size() == feeders_.size())
      continue;
    const auto rank = step.committed ? missing([&](auto one) { return step.trained.contains(one); })
                                     : missing([&](auto one) { return step.staged.contains(one); });
    if (step.committed)
      waits.set(name(), fmt::format("trained {} {}", number, rank),
                fmt::format("rank {} to train step {}", rank, number),
                fmt::format("trainer-{}", rank));
    else
      waits.set(name(), fmt::format("staged {} {}", number, rank),
                fmt::format("rank {} to stage step {}", rank, number),
                fmt::format("feeder-{}", rank));
    return;
  }
  if (finished_) {
    waits.clear(name());
  } else if (has_batch()) {
    const bool packers =
        std::ranges::any_of(packers_, [](const auto &one) { return !one.draining; });
    waits.set(name(), packers ? "ranks" : "a packer",
              packers ? fmt::format("{} ranks to register", options_.plan.ranks) : "a packer",
              packers ? "trainer" : "packer");
  } else {
    const bool traces = options_.batch.traces != 0;
    waits.set(name(), fmt::format("batch {}", next_step_),
              fmt::format("has {}/{} {} of step {}", traces ? queue_traces_ : queue_tokens_,
                          traces ? options_.batch.traces : options_.batch.tokens,
                          traces ? "traces" : "tokens", next_step_),
              "assembler");
  }
}

void planner::tell_hunger() {
  const bool now = !finished_ && !ending() && hungry();
  if (now == told_hungry_)
    return;
  told_hungry_ = now;
  for (const auto &reader : readers_)
    if (reader)
      tell(reader, hunger{now});
  tell(supervisor_, hunger{now});
}

void planner::give_permits() {
  if (ending())
    return;
  const auto target = options_.batch.traces != 0 ? options_.batch.traces : options_.batch.tokens;
  const auto backlog = options_.batch.traces != 0 ? backlog_traces_ : backlog_tokens_;
  auto below = permitted_below_;
  if (backlog / target < options_.limits.max_backlog_steps &&
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

void planner::finish_if_done() {
  const bool nothing_to_come = ending() || (all_received() && !has_batch());
  if (!nothing_to_come || !steps_.empty())
    return;
  finished_ = true;
  for (const auto &group : queue_)
    enter(group, group_end::held);
  for (const auto &[ref, group] : waiting_)
    enter(group, group.scored.samples.empty() ? group.scored.end : group_end::held);
  tell(supervisor_, run_finished{ledger_, grid_hash_.value(), all_received()});
}

void planner::give_up(const error &why) {
  finished_ = true;
  tell(supervisor_, run_failed{name(), why});
}

} // namespace millrace
