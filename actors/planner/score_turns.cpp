// SPDX-License-Identifier: Apache-2.0
#include "actors/planner/score_turns.hpp"

#include <utility>

namespace millrace {

void score_turns::want(turn one) {
  const auto ref = one.group;
  auto order = deterministic_ ? ref : group_ref{arrivals_++, 0};
  if (const auto before = wanted_.find(ref); before != wanted_.end()) {
    order = before->second.order; // its place stays
    finish(ref);
  }
  if (one.key.empty())
    asked_.emplace(order, ref);
  else
    by_key_[one.key].emplace(order, ref);
  wanted_.emplace(ref, entry{std::move(one), order});
}

std::optional<score_turns::turn> score_turns::next(const std::function<bool(group_ref)> &is_known) {
  if (!asked_.empty()) {
    auto &found = wanted_.at(asked_.begin()->second);
    asked_.erase(asked_.begin());
    found.given = true;
    return found.what;
  }
  while (deterministic_ && (wanted_.contains({known_below_, 0}) || is_known({known_below_, 0})))
    ++known_below_;
  for (const auto &[key, queue] : by_key_) {
    auto &first = wanted_.at(queue.begin()->second);
    if (first.given || (deterministic_ && first.what.group.ordinal >= known_below_))
      continue;
    first.given = true;
    return first.what;
  }
  return std::nullopt;
}

void score_turns::finish(group_ref ref) {
  const auto found = wanted_.find(ref);
  if (found == wanted_.end())
    return;
  const auto &[what, order, given] = found->second;
  asked_.erase(order);
  if (const auto queue = by_key_.find(what.key); queue != by_key_.end()) {
    queue->second.erase(order);
    if (queue->second.empty())
      by_key_.erase(queue);
  }
  wanted_.erase(found);
}

const std::string *score_turns::in_turn(group_ref ref) const {
  const auto found = wanted_.find(ref);
  return found == wanted_.end() || !found->second.given ? nullptr : &found->second.what.key;
}

void score_turns::clear() {
  wanted_.clear();
  by_key_.clear();
  asked_.clear();
}

} // namespace millrace
