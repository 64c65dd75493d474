// SPDX-License-Identifier: Apache-2.0
#include "actors/planner/run_history.hpp"

#include <utility>

namespace millrace {

namespace {

group_ref ref_of(const log_group &group) { return {group.ordinal, group.source}; }

/// Samples of a group that were too old.
sample_lengths stale_in(const log_group &group) {
  sample_lengths out;
  for (const auto &row : group.samples)
    if (row.state == static_cast<std::uint8_t>(episode_state::stale))
      out.add({row.samples, row.tokens, group.longest_stale});
  return out;
}

step_report basic_report_of(const log_commit &in) {
  step_report out;
  out.step = in.step;
  out.groups = in.groups.size();
  out.traces = in.traces;
  out.samples = in.samples;
  out.tokens = in.tokens;
  out.padding = in.padding;
  out.micro_batches = in.bins.size();
  out.dummies = in.dummies;
  out.wire_bytes = in.wire_bytes;
  out.digest = in.digest;
  out.staleness = in.staleness;
  out.kept_lengths = in.kept_lengths;
  for (const auto &group : in.groups)
    out.stale_lengths.add(stale_in(group));
  return out;
}

status check_states(const std::vector<log_group> &groups) {
  for (const auto &group : groups) {
    for (auto state : group.states)
      if (state >= episode_state_count)
        return fail(errc::unsupported, "group {} has an episode in state {}", group.key.text(),
                    state);
    for (const auto &row : group.samples)
      if (row.state >= episode_state_count)
        return fail(errc::unsupported, "group {} has samples in state {}", group.key.text(),
                    row.state);
  }
  return {};
}

} // namespace

status run_history::apply(const log_record &record) {
  return std::visit([this](const auto &in) { return take(in); }, record);
}

status run_history::take(const log_open &in) {
  const auto before = opened_ ? opened_->epoch : 0;
  if (in.epoch != before + 1)
    return fail(errc::damaged, "start {} follows start {}", in.epoch, before);
  if (opened_ && in.folder != opened_->folder)
    return fail(errc::damaged, "start {} is of folder {}, those before it of {}", in.epoch,
                in.folder.hex(), opened_->folder.hex());
  opened_ = in;
  return {};
}

status run_history::take(const log_generation &in) {
  if (in.generation != generation_ + 1)
    return fail(errc::damaged, "generation {} follows {}", in.generation, generation_);
  generation_ = in.generation;
  return {};
}

status run_history::take(const log_commit &in) {
  if (in.step != committed_ + 1)
    return fail(errc::damaged, "step {} is committed after step {}", in.step, committed_);
  MILLRACE_TRY(check_states(in.groups));
  for (const auto &group : in.groups)
    if (groups_.contains(ref_of(group)))
      return fail(errc::damaged, "step {} has group {}, which has ended before", in.step,
                  group.key.text());
  committed_ = in.step;
  auto &step = steps_[in.step];
  step.digest = in.digest;
  step.report = report_of(in);
  step.groups = in.groups;
  step.record = in;
  for (const auto &bin : in.bins)
    step.digests.push_back({bin.rank, bin.index, bin.digest});
  for (const auto &group : in.groups) {
    groups_.insert(ref_of(group));
    open_.insert(ref_of(group));
  }
  return {};
}

step_report run_history::report_of(const log_commit &in) const {
  auto out = basic_report_of(in);
  if (const auto found = settled_stale_.find(in.step); found != settled_stale_.end())
    out.stale_lengths.add(found->second);
  return out;
}

status run_history::take(const log_settled &in) {
  MILLRACE_TRY(check_states(in.groups));
  for (const auto &group : in.groups)
    if (groups_.contains(ref_of(group)))
      return fail(errc::damaged, "group {} is settled, and has ended before", group.key.text());
  for (const auto &group : in.groups) {
    groups_.insert(ref_of(group));
    answers_.erase(ref_of(group));
    done_.add(group);
    if (group.judged_for == 0)
      continue;
    settled_stale_[group.judged_for].add(stale_in(group));
    if (const auto step = steps_.find(group.judged_for); step != steps_.end())
      step->second.report.stale_lengths.add(stale_in(group)); // the step was written first
  }
  return {};
}

status run_history::take(const log_scored &in) {
  const group_ref ref{in.ordinal, in.source};
  if (groups_.contains(ref) || answers_.contains(ref))
    return fail(errc::damaged, "a second answer for group {} of source {}", in.ordinal, in.source);
  if (!in.key.empty()) {
    const auto *last = scored(in.key);
    if (in.number != (last == nullptr ? 1 : last->number + 1) ||
        in.before != (last == nullptr ? std::vector<std::uint8_t>() : last->after))
      return fail(errc::damaged, "answer {} of {} does not follow from the one before it",
                  in.number, in.key);
    scored_.insert_or_assign(in.key, in).first->second.annotations = {};
  }
  answers_.emplace(ref, in.annotations);
  return {};
}

status run_history::take(const log_trained &in) {
  if (in.step != trained_ + 1 || in.step > committed_)
    return fail(errc::damaged, "step {} is trained after step {}, committed are {}", in.step,
                trained_, committed_);
  trained_ = in.step;
  steps_.at(in.step).report.totals = {in.rl, in.ce, in.ref_kl};
  if (keep_ == step_keep::trained)
    steps_.at(in.step).record.reset(); // its groups may still be rolled back
  if (keep_ == step_keep::trained)
    for (const auto &group : steps_.at(in.step).groups)
      make_final(ref_of(group));
  return {};
}

status run_history::take(const log_durable &in) {
  if (in.step < durable_ || in.step > trained_)
    return fail(errc::damaged, "a checkpoint of step {} after one of step {}, trained are {}",
                in.step, durable_, trained_);
  durable_ = in.step;
  while (final_ < durable_)
    finish_step(++final_);
  return {};
}

/// Nobody needs it again.
void run_history::make_final(group_ref ref) {
  if (!open_.erase(ref))
    return;
  answers_.erase(ref);
  newly_final_.push_back(ref);
}

/// It will never be served or rolled back again.
void run_history::finish_step(std::uint64_t step) {
  auto &one = steps_.at(step);
  for (const auto &group : one.groups) {
    done_.add(group);
    make_final(ref_of(group));
  }
  one.groups = {};
  one.record.reset();
}

status run_history::take(const log_rolled_back &in) {
  if (in.first != final_ + 1 || in.last != committed_ || in.trained != trained_ ||
      in.first > in.last + 1)
    return fail(errc::damaged,
                "steps {} to {} are rolled back (trained {}), but {} to {} could be (trained {})",
                in.first, in.last, in.trained, final_ + 1, committed_, trained_);
  for (auto step = in.first; step <= in.last; ++step)
    for (auto &group : steps_.at(step).groups) {
      open_.erase(ref_of(group));
      if (step <= trained_) {
        answers_.erase(ref_of(group));
        change_state(group, episode_state::trained, episode_state::rolled_back);
        done_.add(group);
      } else {
        groups_.erase(ref_of(group));
        freed_.push_back(ref_of(group));
      }
    }
  steps_.erase(steps_.upper_bound(final_), steps_.end());
  settled_stale_.erase(settled_stale_.upper_bound(final_), settled_stale_.end());
  committed_ = final_;
  trained_ = final_;
  return {};
}

const log_commit *run_history::commit(std::uint64_t step) const {
  const auto found = steps_.find(step);
  return found == steps_.end() || !found->second.record ? nullptr : &*found->second.record;
}

std::vector<group_ref> run_history::take_final() { return std::exchange(newly_final_, {}); }
std::vector<group_ref> run_history::take_freed() { return std::exchange(freed_, {}); }

const log_scored *run_history::scored(const std::string &key) const {
  const auto found = scored_.find(key);
  return found == scored_.end() ? nullptr : &found->second;
}

const frame *run_history::answer(group_ref ref) const {
  const auto found = answers_.find(ref);
  return found == answers_.end() ? nullptr : &found->second;
}

ledger run_history::entries() const {
  auto out = done_;
  for (const auto &[number, step] : steps_)
    for (auto group : step.groups) {
      if (number > trained_)
        change_state(group, episode_state::trained, episode_state::held);
      out.add(group);
    }
  return out;
}

digest128 run_history::grid_hash() const {
  millrace::grid_hash out;
  for (const auto &[number, step] : steps_)
    out.add_step(number, step.digests);
  return out.value();
}

std::vector<step_report> run_history::reports() const {
  std::vector<step_report> out;
  for (const auto &[number, step] : steps_)
    out.push_back(step.report);
  return out;
}

} // namespace millrace
