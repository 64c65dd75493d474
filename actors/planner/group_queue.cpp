// SPDX-License-Identifier: Apache-2.0
#include "actors/planner/group_queue.hpp"

#include <algorithm>
#include <utility>

namespace millrace {

void group_queue::add(queued_group group) {
  backlog_ += count_of(group);
  backlog_traces_ += group.scored.kept_traces;
  if (deterministic_)
    waiting_.emplace(group.ref, std::move(group));
  else
    arrived_.push_back(std::move(group));
}

void group_queue::put_back(std::vector<queued_group> groups) {
  for (auto at = groups.rbegin(); at != groups.rend(); ++at) {
    for (auto &sample : at->scored.samples)
      sample.outcome = sample_record::fate::waiting;
    backlog_ += count_of(*at);
    backlog_traces_ += at->scored.kept_traces;
    ready_.push_front(std::move(*at));
  }
  forget_judgement();
}

std::optional<queued_group>
group_queue::take_ended(const std::function<bool(group_ref)> &has_ended) {
  while (true) {
    std::optional<queued_group> group;
    if (deterministic_) {
      while (has_ended({next_, 0}) || is_ready({next_, 0}))
        ++next_;
      if (waiting_.empty() || waiting_.begin()->first.ordinal != next_)
        return std::nullopt;
      group = std::move(waiting_.extract(waiting_.begin()).mapped());
      ++next_;
    } else if (!arrived_.empty()) {
      group = std::move(arrived_.front());
      arrived_.pop_front();
    } else {
      return std::nullopt;
    }
    if (group->scored.samples.empty() || group->scored.end != group_end::settled)
      return group;
    ready_.push_back(std::move(*group));
  }
}

namespace {

/// Some token is left to be trained, by age and length.
bool can_train(const ready_group &group) {
  return std::ranges::any_of(group.samples, [](const sample_record &sample) {
    return sample.outcome != sample_record::fate::stale && sample.trainable_in_seq_len > 0;
  });
}

} // namespace

std::vector<queued_group> group_queue::judge(std::uint64_t step) {
  if (step != judged_for_)
    forget_judgement();
  judged_for_ = step;
  std::vector<queued_group> out;
  while (left_ < target() && judged_ < ready_.size()) {
    auto &group = ready_[judged_];
    const auto found = millrace::judge(group.scored, step, rule_);
    if (found.traces == 0) {
      uncount(group);
      out.push_back(std::move(group));
      ready_.erase(ready_.begin() + static_cast<std::ptrdiff_t>(judged_));
      continue;
    }
    const auto left = batch_.traces != 0 ? found.traces : found.tokens;
    left_ += left;
    too_old_ += count_of(group) - left;
    ++judged_;
    if (can_train(group.scored))
      ++judged_in_;
  }
  return out;
}

std::vector<queued_group> group_queue::cut() {
  std::vector<queued_group> out;
  for (; judged_ > 0; --judged_) {
    uncount(ready_.front());
    out.push_back(std::move(ready_.front()));
    ready_.pop_front();
  }
  forget_judgement();
  return out;
}

void group_queue::forget_judgement() noexcept {
  judged_for_ = 0;
  judged_ = 0;
  left_ = 0;
  too_old_ = 0;
}

void group_queue::uncount(const queued_group &group) noexcept {
  backlog_ -= count_of(group);
  backlog_traces_ -= group.scored.kept_traces;
}

bool group_queue::is_ready(group_ref ref) const {
  return std::ranges::find(ready_, ref, &queued_group::ref) != ready_.end();
}

std::vector<group_ref> group_queue::held_by(const peer &assembler) const {
  std::vector<group_ref> out;
  const auto look = [&](const queued_group &group) {
    if (group.assembler == assembler)
      out.push_back(group.ref);
  };
  for_each(look);
  for (const auto &group : arrived_)
    look(group);
  return out;
}

queued_group *group_queue::find(group_ref ref) {
  if (const auto found = waiting_.find(ref); found != waiting_.end())
    return &found->second;
  for (auto *list : {&ready_, &arrived_})
    if (const auto found = std::ranges::find(*list, ref, &queued_group::ref); found != list->end())
      return &*found;
  return nullptr;
}

void group_queue::clear() {
  waiting_.clear();
  arrived_.clear();
  ready_.clear();
  forget_judgement();
}

} // namespace millrace
