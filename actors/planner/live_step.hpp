// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "actors/interfaces.hpp"
#include "actors/planner/group_queue.hpp"
#include "actors/planner/step.hpp"
#include "schema/log_records.hpp"

namespace millrace {

/// A bin that a packer has to gather.
struct bin_order {
  pack_bin order; ///< a group whose bytes nobody offers yet has no assembler
  peer packer;    ///< none: nobody has it

  bool is_located() const;
};

/// A step from the moment it is cut, or is wanted again, until every rank has trained it.
///
///     packing --staged on every rank--> committed --trained on every rank--> (done)
///     committed, some ranks lack it --asked for--> packing again --staged as in the log-->
///     committed
struct live_step {
  std::vector<queued_group> groups; ///< until it is committed
  step_report report;
  std::vector<log_bin> plan; ///< for the log; digests come with the commit
  std::map<std::uint32_t, std::vector<micro_batch_digest>> staged; ///< by rank
  std::map<bin_ref, bin_order> bins; ///< until their rank has staged them
  bool committed = false;
  std::set<std::uint32_t> lacking;      ///< committed: ranks that have to get it again
  std::set<std::uint32_t> staged_again; ///< of those: ranks that wait for the steps before it
  bool asked_for = false;               ///< for those
  std::map<group_ref, peer> places;     ///< committed: who holds its groups again
  std::set<std::uint32_t> trained;      ///< ranks
};

/// Nobody offers the bytes of some bin.
bool waits_for_bytes(const live_step &step);

/// A new step: its orders for packers, and what the log will say of them. `feeders` by rank.
void add_bins(live_step &step, const step_bins &bins, const std::vector<peer> &feeders,
              const planner_claim &claim);

/// The orders for the ranks that lack a committed step. Errors: bad_format, bad_value if the record
/// is not what a planner writes.
status add_bins_again(live_step &step, const log_commit &record, const std::vector<peer> &feeders,
                      const planner_claim &claim);

/// A group's bytes are with this assembler. @returns the orders to send again.
std::vector<const bin_order *> locate(live_step &step, group_ref ref, const peer &assembler);

/// The record of a step that every rank has staged.
log_commit commit_record(const live_step &step);

} // namespace millrace
