// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "actors/group_set.hpp"
#include "actors/planner/ledger.hpp"
#include "actors/recovery_config.hpp"
#include "runtime/result.hpp"
#include "schema/log_records.hpp"

namespace millrace {

/// What the log says that has happened: its records, applied in order. No file and no clock. The
/// planner asks it instead of remembering, so that what it knows is what is written.
///
/// A step:  (none) --commit--> committed --trained--> trained --durable--> durable
///             ^----rolled_back----+---------------------+
class run_history {
public:
  explicit run_history(step_keep keep) : keep_(keep) {}

  /// Errors: damaged for a record that does not follow from those before it; nothing has changed.
  status apply(const log_record &record);

  /// The last start; none in a new log.
  const std::optional<log_open> &opened() const noexcept { return opened_; }
  /// Who leads since the last record: rises at every start and with every trainer job.
  std::uint64_t epoch() const noexcept { return opened_ ? opened_->epoch + generation_ : 0; }
  std::uint64_t generation() const noexcept { return generation_; }
  std::uint64_t committed() const noexcept { return committed_; } ///< last step; 0: none
  std::uint64_t trained() const noexcept { return trained_; }     ///< the same
  std::uint64_t durable() const noexcept { return durable_; }     ///< the same

  /// The group has its end in the log.
  bool has(group_ref ref) const { return groups_.contains(ref); }
  const group_set &groups() const noexcept { return groups_; }
  /// Nobody needs the group's bytes again: it went to no step, or to one that will not be served
  /// again.
  bool is_settled(group_ref ref) const { return groups_.contains(ref) && !open_.contains(ref); }

  /// The record of a step that may have to be made again; null if it is not kept.
  const log_commit *commit(std::uint64_t step) const;
  /// The step's digest. Precondition: step is committed.
  const digest128 &digest(std::uint64_t step) const { return steps_.at(step).digest; }
  /// Precondition: step is committed.
  const step_report &report(std::uint64_t step) const { return steps_.at(step).report; }
  /// Groups of the steps that became final since the last call: their readers may forget them.
  std::vector<group_ref> take_final();
  /// Groups that a rolled_back made free since the last call.
  std::vector<group_ref> take_freed();

  /// The last answer of this key; null: there is none.
  const log_scored *scored(const std::string &key) const;
  /// The GroupAnnotations of a group whose answer cannot be had twice and is written down; null:
  /// there is no such answer, or nobody needs it any more.
  const frame *answer(group_ref ref) const;

  /// Every group that has its end in the log. Of committed steps that are not trained: held.
  ledger entries() const;
  digest128 grid_hash() const;
  std::vector<step_report> reports() const;

private:
  struct step_entry {
    digest128 digest;
    std::vector<micro_batch_digest> digests;
    step_report report;
    std::vector<log_group> groups; ///< empty once the step is final
    std::optional<log_commit> record;
  };

  status take(const log_open &in);
  status take(const log_generation &in);
  status take(const log_commit &in);
  status take(const log_settled &in);
  status take(const log_scored &in);
  status take(const log_trained &in);
  status take(const log_durable &in);
  status take(const log_rolled_back &in);
  void make_final(group_ref ref);
  void finish_step(std::uint64_t step);
  step_report report_of(const log_commit &in) const;

  step_keep keep_;
  std::optional<log_open> opened_;
  std::uint64_t generation_ = 0;
  std::uint64_t committed_ = 0;
  std::uint64_t trained_ = 0;
  std::uint64_t durable_ = 0;
  std::uint64_t final_ = 0; ///< steps up to it are never served again
  std::map<std::uint64_t, step_entry> steps_;
  /// By step: samples of settled groups that were too old for it.
  std::map<std::uint64_t, sample_lengths> settled_stale_;
  group_set groups_;
  group_set open_; ///< of groups_: in steps after final_
  ledger done_;    ///< groups outside steps, of final steps, of steps rolled back
  std::map<std::string, log_scored> scored_; ///< the last one of each key, without annotations
  std::map<group_ref, frame> answers_;       ///< of groups that are not settled
  std::vector<group_ref> newly_final_;
  std::vector<group_ref> freed_;
};

} // namespace millrace
