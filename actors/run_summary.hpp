// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "actors/balance.hpp"
#include "actors/interfaces.hpp"
#include "actors/planner/ledger.hpp"
#include "actors/run_counters.hpp"
#include "runtime/json_out.hpp"
#include "schema/recording.hpp"
#include "schema/recording_counts.hpp"

namespace millrace {

/// What a run came to.
struct run_summary {
  std::string id;
  std::string source; ///< the recording that was read
  std::uint32_t ranks = 1;
  double seconds = 0; ///< from the first permit to the last step

  recording_counts expected; ///< counted without the pipeline
  ledger entries;
  /// Groups that the ledger and the source count otherwise, the first of them. Empty, too, if it is
  /// not known of single groups: see differences_of().
  std::vector<group_difference> differences;
  std::uint64_t unparsed =
      0; ///< refused records that name an episode but do not parse: not in `expected`
  std::uint64_t duplicates = 0;
  std::uint64_t late = 0;
  /// Episodes of the source that came after the deadline of their group: in no state.
  std::uint64_t too_late = 0;
  std::uint64_t unnamed_records = 0;
  std::uint64_t unnamed_bytes = 0;
  std::string quarantine; ///< path of the quarantine file; empty if nothing was refused

  std::vector<recording_damage> damage;
  bool torn = false;
  bool damage_allowed = false;

  std::vector<step_report> steps;
  digest128 grid_hash;
  std::shared_ptr<const run_counters> counters;
  turn_meter::summary turns;
  std::uint64_t peak_rss_bytes = 0;
  std::string interrupted; ///< not empty: a signal ended the run

  /// Episodes of the source, by what was counted without the pipeline.
  std::uint64_t source_episodes() const noexcept {
    return expected.episodes + expected.unfinished + unparsed;
  }
  /// Every episode of the source is in exactly one state.
  bool balanced() const noexcept;
  /// Nothing to complain of: balanced, not interrupted, no damage but what was allowed.
  bool ok() const noexcept;
};

/// Episodes that groups closed by their deadline have in the source and not in the ledger.
std::uint64_t count_too_late(const recording_counts &source, const ledger &entries);
/// The groups to name: those that differ if every episode of the source could be counted by group,
/// or if the totals do not agree.
/// @param all_received every group of the source has reached the planner.
/// @param surplus refused episodes that the ledger has in no group.
std::vector<group_difference> differences_of(const run_summary &summary, bool all_received,
                                             std::uint64_t surplus);

/// Tables for a person: stages, steps in brief, the ledger, what is wrong.
void print(const run_summary &summary, std::ostream &out);

/// One line: step, tokens, micro batches, token counts of the losses.
std::string line_of(const step_report &step);

/// Source: docs/formats.md, "Run summary".
json::tree to_json(const run_summary &summary);

} // namespace millrace
