// SPDX-License-Identifier: Apache-2.0
// A step from its cut to its last rank.
#include <algorithm>
#include <utility>

#include "actors/planner/planner.hpp"
#include "runtime/crash_point.hpp"
#include "runtime/log.hpp"

namespace millrace {

namespace {

/// Adds to the report what a plan says.
void count_plan(step_report &report, const step_plan &plan) {
  for (const auto &rank : plan.ranks)
    for (const auto &batch : rank) {
      ++report.micro_batches;
      report.dummies += batch.dummy ? 1 : 0;
      report.padding += batch.padding;
      for (const auto &piece : batch.pieces)
        if (!batch.dummy) {
          ++report.samples;
          report.tokens += piece.tokens;
        }
    }
}

/// And what its groups say.
void count_groups(step_report &report, const std::vector<queued_group> &groups) {
  report.groups = groups.size();
  for (const auto &group : groups) {
    const sample_record *last = nullptr; // samples of a trace are neighbours
    for (const auto &sample : group.scored.samples) {
      if (sample.outcome == sample_record::fate::stale)
        continue;
      if (last == nullptr || last->episode != sample.episode || last->trace != sample.trace)
        ++report.traces;
      if (sample.outcome == sample_record::fate::packed)
        report.kept_lengths.add(sample.tokens);
      last = &sample;
    }
  }
}

std::vector<const ready_group *> scored_groups(const std::vector<queued_group> &groups) {
  std::vector<const ready_group *> out;
  for (const auto &group : groups)
    out.push_back(&group.scored);
  return out;
}

} // namespace

/// Somebody gathers, and the ranks are one job.
bool planner::ready_to_pack() const {
  return ranks_.running() &&
         std::ranges::any_of(packers_, [](const auto &one) { return !one.draining; });
}

bool planner::can_cut() const {
  return has_batch() && steps_.size() <= options_.limits.lookahead && ready_to_pack() && !no_space_;
}

void planner::cut_step() {
  live_step step;
  say_last_batch();
  step.groups = queue_.cut();
  start_step(std::move(step));
}

/// Plans the step, and says what of it cannot be planned.
result<step_bins> planner::plan(live_step &step) {
  std::vector<ready_group *> groups;
  for (auto &group : step.groups)
    groups.push_back(&group.scored);
  auto bins = plan_groups(groups, options_.plan);
  if (bins)
    for (const auto &[sample, reason] : bins->plan.rejected)
      log::warn("a sample of group {} rejected: {}",
                key_of(*groups[bins->places[sample].group]->header->key()).text(), reason);
  return bins;
}

void planner::start_step(live_step step) {
  const stage_meter::timer timer(counters_->stages.pack);
  const auto bins = plan(step);
  if (!bins) {
    give_up(bins.error());
    return;
  }
  if (bins->plan.ranks.empty() || bins->plan.ranks.front().empty()) {
    // Nothing of it is left to train: the groups end outside a step.
    for (auto &group : step.groups)
      end_group(std::move(group), group_end::settled);
    empty_.lost();
    stop_if_empty();
    return;
  }
  const auto number = next_step();
  step.report.step = number;
  count_groups(step.report, step.groups);
  count_plan(step.report, bins->plan);
  step.report.staleness = ages_of(scored_groups(step.groups), number, options_.staleness);
  watch_step(step);
  if (number == 1)
    step.report.assemblers_must_carry = assemblers_must_carry(step);
  ++counters_->steps_cut;
  crash_point("planner.step.cut");
  auto &live = steps_.emplace(number, std::move(step)).first->second;
  add_bins(live, *bins, ranks_.feeders(), claim());
  for (std::uint32_t rank = 0; rank < ranks_.count(); ++rank)
    tell(ranks_.feeder(rank),
         stage_step{number, static_cast<std::uint32_t>(bins->plan.ranks[rank].size()), claim()});
  give_orphans();
}

/// The steps under way, one that is collected, one that is trained, and the groups begun.
std::uint64_t planner::assemblers_must_carry(const live_step &step) const {
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
      if (!order.packer && order.is_located()) {
        const auto whose = usable.size() <= options_.plan.ranks ? bin.rank : given++;
        order.packer = usable[whose % usable.size()];
        crash_point("planner.bin.send");
        tell(order.packer, order.order);
      }
}

void planner::take_staged(const step_staged &in) {
  if (finished_ || in.epoch != log_->history().epoch() || !ranks_.running())
    return; // it is of a step that was thrown away
  const auto found = steps_.find(in.step);
  if (found != steps_.end() && found->second.committed) {
    take_staged_again(found->second, in);
    return;
  }
  if (found == steps_.end() || in.rank >= ranks_.count() || !are_planned(found->second, in) ||
      !found->second.staged.emplace(in.rank, in.digests).second) {
    give_up({errc::conflict,
             fmt::format("rank {} staged step {}, which is not to be staged", in.rank, in.step)});
    return;
  }
  std::erase_if(found->second.bins, [&](const auto &bin) { return bin.first.rank == in.rank; });
  found->second.report.wire_bytes += in.wire_bytes;
  counters_->wire_bytes += in.wire_bytes;
  crash_point("planner.staged.taken");
  pump();
}

/// A committed step that a rank lacked. It must have become what it was.
void planner::take_staged_again(live_step &step, const step_staged &in) {
  if (!step.lacking.contains(in.rank) || step.staged_again.contains(in.rank))
    return;
  std::vector<micro_batch_digest> before;
  for (const auto &bin : log_->history().commit(in.step)->bins)
    if (bin.rank == in.rank)
      before.push_back({bin.rank, bin.index, bin.digest});
  for (std::size_t i = 0; i < std::max(before.size(), in.digests.size()); ++i)
    if (before.size() != in.digests.size() || before[i] != in.digests[i]) {
      const auto text = [&](const auto &list) {
        return i < list.size() ? list[i].digest.hex() : std::string("none");
      };
      give_up({errc::conflict,
               fmt::format("step {} was made again for rank {}, and micro batch {} has digest {}; "
                           "it was committed with {}",
                           in.step, in.rank, i, text(in.digests), text(before))});
      return;
    }
  std::erase_if(step.bins, [&](const auto &bin) { return bin.first.rank == in.rank; });
  counters_->wire_bytes += in.wire_bytes;
  crash_point("planner.again.staged");
  step.staged_again.insert(in.rank);
  commit_again(in.rank);
  pump();
}

/// Gives a rank the steps that it lacked, in order.
void planner::commit_again(std::uint32_t rank) {
  const auto &log = log_->history();
  for (auto &[number, step] : steps_) {
    if (!step.lacking.contains(rank))
      continue;
    if (step.staged_again.erase(rank) == 0)
      return;
    step.lacking.erase(rank);
    tell(ranks_.feeder(rank),
         commit_step{number, log.digest(number), claim(), log.report(number).staleness});
    crash_point("planner.again.sent");
    if (!step.lacking.empty())
      continue;
    std::vector<group_ref> groups;
    for (const auto &[ref, assembler] : step.places)
      groups.push_back(ref);
    step.places.clear();
    settle(groups, false);
  }
}

/// Whether a rank has staged the micro batches that it was given, and no others.
bool planner::are_planned(const live_step &step, const step_staged &in) {
  const auto mine =
      std::ranges::count_if(step.bins, [&](const auto &bin) { return bin.first.rank == in.rank; });
  std::uint32_t index = 0;
  return std::cmp_equal(in.digests.size(), mine) &&
         std::ranges::all_of(in.digests, [&](const auto &one) {
           return one.rank == in.rank && one.index == index++;
         });
}

/// Commits, in order, the steps that every rank has staged. Those that some rank lacks come first.
void planner::commit_ready() {
  for (auto &[number, step] : steps_) {
    const bool is_done = step.committed && step.lacking.empty();
    if (!is_done &&
        (step.committed || step.staged.size() != ranks_.count() || !commit(number, step)))
      return;
  }
}

/// The order is what makes a step safe: it is in the log, on the disk, before any rank hears of it.
bool planner::commit(std::uint64_t number, live_step &step) {
  std::vector<micro_batch_digest> digests;
  for (const auto &[rank, mine] : step.staged)
    digests.insert(digests.end(), mine.begin(), mine.end());
  step.report.digest = step_digest(std::move(digests));
  crash_point("planner.commit.append");
  if (!write(commit_record(step)))
    return false;
  crash_point("planner.commit.written");
  if (!sync())
    return false;
  crash_point("planner.commit.synced");
  step.committed = true;
  for (const auto &feeder : ranks_.feeders()) {
    tell(feeder, commit_step{number, step.report.digest, claim(), step.report.staleness});
    crash_point("planner.commit.sent");
  }
  std::vector<group_ref> groups;
  for (const auto &group : step.groups)
    groups.push_back(group.ref);
  settle(groups, false);
  step.groups.clear();
  step.plan.clear();
  crash_point("planner.commit.settled");
  flush({});
  return true;
}

void planner::take_trained(const step_trained &in) {
  if (finished_)
    return;
  if (!ranks_
           .running()) { // before all ranks have said where they stand, or of a job that has ended
    ranks_.note_trained(in);
    return;
  }
  const auto found = steps_.find(in.step);
  if (found == steps_.end() || !found->second.committed || in.rank >= ranks_.count()) {
    if (in.step > log_->history().committed() || in.rank >= ranks_.count())
      give_up({errc::conflict,
               fmt::format("rank {} trained step {}, which is not committed", in.rank, in.step)});
    return; // else it is said twice, or by a job that has ended
  }
  found->second.trained.insert(in.rank);
  found->second.report.totals = in.totals;
  crash_point("planner.trained.taken");
  pump();
}

/// Writes down, in order, the steps that every rank has trained.
void planner::record_trained() {
  while (!steps_.empty()) {
    const auto first = steps_.begin();
    const auto &[number, step] = *first;
    if (!step.committed || step.trained.size() != ranks_.count())
      return;
    if (number > log_->history().trained()) {
      const auto &totals = step.report.totals;
      crash_point("planner.trained.append");
      if (!write(log_trained{number, totals.rl, totals.ce, totals.ref_kl}))
        return;
      crash_point("planner.trained.written");
      ++counters_->steps_trained;
      auto report = log_->history().report(number);
      report.assemblers_must_carry = step.report.assemblers_must_carry;
      tell(supervisor_, step_done{std::move(report)});
    }
    steps_.erase(first);
  }
}

} // namespace millrace
