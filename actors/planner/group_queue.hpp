// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "actors/interfaces.hpp"
#include "actors/planner/planner_config.hpp"
#include "actors/planner/staleness.hpp"

namespace millrace {

/// A scored group that waits for a step, or ends outside one.
struct queued_group {
  group_ref ref;
  ready_group scored;
  peer assembler; ///< who has its bytes
};

/// The groups that have reached the planner and are in no step. In deterministic order a group
/// takes its turn when all ordinals before it have; else in the order of arrival.
class group_queue {
public:
  group_queue(batch_config batch, bool deterministic, staleness_rule rule = {})
      : batch_(batch), deterministic_(deterministic), rule_(rule) {}

  void add(queued_group group);
  /// Back to the front, in this order: their step is no more.
  void put_back(std::vector<queued_group> groups);

  /// The next group whose turn has come and that has no kept sample: it ends outside a step. Those
  /// with samples that come before it are ready to be cut.
  /// @param has_ended tells of groups that ended in an earlier life of the planner.
  std::optional<queued_group> take_ended(const std::function<bool(group_ref)> &has_ended);

  /// Judges, for the step that is cut next, as many of the ready groups as it takes, in order. To
  /// be called before what follows is asked, whenever groups became ready or the step is another
  /// one.
  /// @returns those of which nothing is left: they end outside a step.
  std::vector<queued_group> judge(std::uint64_t step);
  /// What is left of them makes a whole batch.
  bool has_batch() const noexcept { return left_ >= target(); }
  bool empty() const noexcept { return judged_ == 0; }
  /// None waits for the turn of another.
  bool all_ready() const noexcept { return waiting_.empty(); }
  /// Takes the groups that were judged: those of a batch, or of a short last one. Precondition: not
  /// empty().
  std::vector<queued_group> cut();

  /// Null if it is not here.
  queued_group *find(group_ref ref);
  /// Groups before this one take their turn again.
  void turn_back(std::uint64_t ordinal) { next_ = std::min(next_, ordinal); }
  /// All of them, to be told apart from what has ended.
  template <class F> void for_each(F &&each) const {
    for (const auto &group : ready_)
      each(group);
    for (const auto &[ref, group] : waiting_)
      each(group);
  }
  /// Those whose bytes are there.
  std::vector<group_ref> held_by(const peer &assembler) const;
  void clear();

  /// What batch_config counts (traces or tokens): in all groups here, without what was judged too
  /// old, and in those that were judged.
  std::uint64_t backlog() const noexcept { return backlog_ - too_old_; }
  std::uint64_t ready() const noexcept { return left_; }
  /// Rises with every group that was judged and of which something is left to train.
  std::uint64_t judged_in() const noexcept { return judged_in_; }
  std::uint64_t target() const noexcept {
    return batch_.traces != 0 ? batch_.traces : batch_.tokens;
  }
  std::uint64_t backlog_traces() const noexcept { return backlog_traces_; }

private:
  void forget_judgement() noexcept;
  /// It leaves ready_.
  void uncount(const queued_group &group) noexcept;
  /// It had its turn, and took it before turn_back().
  bool is_ready(group_ref ref) const;
  std::uint64_t count_of(const queued_group &group) const noexcept {
    return batch_.traces != 0 ? group.scored.kept_traces : group.scored.kept_tokens;
  }

  const batch_config batch_;
  const bool deterministic_;
  const staleness_rule rule_;
  std::map<group_ref, queued_group> waiting_; ///< deterministic: arrived before their turn
  std::deque<queued_group> arrived_;          ///< otherwise: not looked at yet
  std::deque<queued_group> ready_;            ///< with kept samples, in order
  std::uint64_t next_ = 0;                    ///< deterministic: the ordinal whose turn it is
  std::uint64_t backlog_ = 0;
  std::uint64_t backlog_traces_ = 0;
  std::uint64_t judged_for_ = 0; ///< step; 0: none
  std::size_t judged_ = 0;       ///< so many of ready_, from the front
  std::uint64_t left_ = 0;       ///< of those
  std::uint64_t too_old_ = 0;    ///< of those
  std::uint64_t judged_in_ = 0;
};

} // namespace millrace
