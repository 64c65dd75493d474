// SPDX-License-Identifier: Apache-2.0
// Answers of scorers; those that cannot be had twice go into the log before they are used.
#include <algorithm>
#include <utility>

#include "actors/planner/planner.hpp"
#include "runtime/crash_point.hpp"
#include "runtime/log.hpp"

namespace millrace {

/// A scorer may ask for a group that has its answer: its question, or the first answer, was
/// repeated since somebody was lost.
void planner::take_wanted(const score_wanted &in) {
  if (finished_)
    return;
  const auto *answer = log_->history().answer(in.group);
  if (answer == nullptr && !received_.contains(in.group)) {
    turns_.want({in.group, in.key, in.scorer});
    pump();
    return;
  }
  tell(in.scorer, score_turn{.group = in.group, .scored = true, .state = {}});
  if (received_.contains(in.group)) {
    tell(in.assembler, groups_received{{in.group}});
    receive_again(in.group, in.assembler);
  } else {
    receive(in.group, make_ready_group(in.header, *answer, options_.plan.seq_len), in.assembler);
  }
}

void planner::take_scored(const group_scored &in) {
  if (in.once && !received_.contains(in.group) && !finished_) {
    unlogged_.push_back(in);
    pump();
    return;
  }
  if (received_.contains(in.group) && !finished_) { // one is enough, whatever this one says
    turns_.finish(in.group);
    tell(in.assembler, groups_received{{in.group}});
    receive_again(in.group, in.assembler);
    pump();
    return;
  }
  receive(in.group, make_ready_group(in.header, in.annotations, options_.plan.seq_len),
          in.assembler);
}

/// Writes down what cannot be had twice. No sync: whatever rests on it (the next answer of its key,
/// the step it goes to) is a later record of the same log, and if this one is lost so are those.
void planner::log_answers() {
  while (!unlogged_.empty() && !finished_) {
    const auto &first = unlogged_.front();
    const bool is_new =
        !received_.contains(first.group) && log_->history().answer(first.group) == nullptr;
    if (is_new && !may_follow(first)) {
      ask_once_more(first);
      unlogged_.pop_front();
      continue;
    }
    const auto *known = log_->history().answer(first.group);
    auto group = make_ready_group(first.header, known != nullptr ? *known : first.annotations,
                                  options_.plan.seq_len);
    if (is_new && group) { // what cannot be used would end every later start as well
      crash_point("planner.scored.append");
      if (!write(log_scored{first.group.ordinal, first.group.source, first.once->key,
                            first.once->number, first.once->before, first.once->after,
                            first.annotations}))
        return;
      crash_point("planner.scored.written");
    }
    const auto in = std::move(unlogged_.front());
    unlogged_.pop_front();
    take_in(in.group, std::move(group), in.assembler);
  }
}

/// It was this group's turn, and the answer rests on the state that the log has.
bool planner::may_follow(const group_scored &in) const {
  const auto *key = turns_.in_turn(in.group);
  if (key == nullptr || *key != in.once->key)
    return false;
  if (key->empty())
    return in.once->number == 0 && in.once->before.empty() && in.once->after.empty();
  const auto *last = log_->history().scored(*key);
  return in.once->number == (last == nullptr ? 1 : last->number + 1) &&
         in.once->before == (last == nullptr ? std::vector<std::uint8_t>() : last->after);
}

void planner::ask_once_more(const group_scored &in) {
  if (++counters_->refused_answers <= most_warnings)
    log::warn("answer {} of {} for group {} refused: it does not follow from what the log has; the "
              "group is scored again{}",
              in.once->number, in.once->key, in.group.ordinal,
              last_warning(counters_->refused_answers));
  turns_.finish(in.group);
  ask(in.assembler, {in.group}, false);
}

void planner::give_turns() {
  const auto is_known = [this](group_ref ref) {
    return received_.contains(ref) || log_->history().answer(ref) != nullptr;
  };
  while (const auto next = turns_.next(is_known)) {
    const auto *last = next->key.empty() ? nullptr : log_->history().scored(next->key);
    score_turn out{.group = next->group, .number = next->key.empty() ? 0U : 1U, .state = {}};
    if (last != nullptr) {
      out.number = last->number + 1;
      out.state = last->after;
    }
    crash_point("planner.turn.send");
    tell(next->scorer, std::move(out));
  }
}

} // namespace millrace
