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
    ready_count_ += count_of(*at);
    ready_.push_front(std::move(*at));
  }
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
    if (group->scored.samples.empty())
      return group;
    ready_count_ += count_of(*group);
    ready_.push_back(std::move(*group));
  }
}

bool group_queue::has_batch() const noexcept { return !ready_.empty() && ready_count_ >= target(); }

std::vector<queued_group> group_queue::cut() {
  std::vector<queued_group> out;
  std::uint64_t count = 0;
  while (!ready_.empty() && count < target()) {
    count += count_of(ready_.front());
    backlog_traces_ -= ready_.front().scored.kept_traces;
    out.push_back(std::move(ready_.front()));
    ready_.pop_front();
  }
  ready_count_ -= count;
  backlog_ -= count;
  return out;
}

bool group_queue::is_ready(group_ref ref) const {
  return std::ranges::find(ready_, ref, &queued_group::ref) != ready_.end();
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
}

} // namespace millrace
