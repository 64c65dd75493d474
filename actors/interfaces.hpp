// SPDX-License-Identifier: Apache-2.0
#pragma once

// Every message between actors, once. They stay in the process; what they carry as `frame` or
// `message` are the bodies of schema/*.fbs, ready for a wire. Order holds between one sender and
// one receiver, and nowhere else.

#include <compare>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "actors/packer/micro_batch.hpp"
#include "actors/planner/ledger.hpp"
#include "actors/trainer/micro_batch_digest.hpp"
#include "runtime/caf.hpp"
#include "runtime/digest.hpp"
#include "schema/recording_counts.hpp"
#include "schema/sealed_episode.hpp"

namespace millrace {

/// A group's place in the order of the run: sources are merged by (ordinal, source).
struct group_ref {
  std::uint64_t ordinal = 0; ///< position of the group's first record in its source
  std::uint32_t source = 0;

  auto operator<=>(const group_ref &) const = default;
};

/// What is known of a group before its episodes. Shared by all messages of one group.
struct group_info {
  group_key key;
  std::string source; ///< name of the source
  std::uint32_t size = 0;
};

/// From the reader to itself: go on with the next records.
struct read_more {};

/// From the planner to every reader: groups with an ordinal below `below` may begin. Groups that
/// have begun always go on. `below` never falls.
struct permit {
  std::uint64_t below;
};

/// From a reader to the planner: the next record begins group `ordinal`, which has no permit yet.
struct permit_wanted {
  std::uint32_t reader;
  std::uint64_t ordinal;
};

/// From a reader to an assembler: one message of an episode whose nodes come one by one.
struct frame_arrived {
  group_ref group;
  std::shared_ptr<const group_info> info;
  std::uint32_t member; ///< place of the episode in its group, by first record
  episode_frame part;
};

/// From a reader to an assembler: a whole episode.
struct episode_arrived {
  group_ref group;
  std::shared_ptr<const group_info> info;
  std::uint32_t member;
  sealed_episode episode;
};

/// From a reader to an assembler: an episode that the door refused. It counts for its group.
struct episode_rejected {
  group_ref group;
  std::shared_ptr<const group_info> info;
  std::uint32_t member;
  std::string id;
  std::uint32_t attempt;
  std::string reason;
};

/// From a reader to the group's assembler: the size of a group that began without one.
struct group_sized {
  group_ref group;
  std::shared_ptr<const group_info> info;
};

/// From a reader to every assembler and to the planner: nothing comes after this. `groups`: all
/// groups of the source, of this and every other reader that shares it.
struct source_ended {
  std::uint32_t reader;
  std::uint64_t groups;
};

/// From an assembler to a scorer: a complete group. The scorer answers with group_scored to the
/// planner.
struct group_complete {
  group_ref group;
  frame header; ///< GroupHeader
  caf::actor assembler;
};

/// From a scorer to the planner.
struct group_scored {
  group_ref group;
  frame header;      ///< GroupHeader
  frame annotations; ///< GroupAnnotations
  caf::actor assembler;
};

/// Why a group ends without being scored.
enum class tombstone_reason : std::uint8_t {
  expired,  ///< data ended before all its episodes came
  unscored, ///< the scorer refused it: `why` says the reason
};

/// From an assembler or a scorer to the planner, in place of group_scored: the group ends outside a
/// step.
struct group_tombstone {
  group_ref group;
  frame header; ///< GroupHeader, with what was there
  tombstone_reason reason;
  std::string why; ///< for people
  caf::actor assembler;
};

/// From the planner to an assembler: these groups are settled; forget them.
struct groups_settled {
  std::vector<group_ref> groups;
};

/// From a reader to the supervisor, when it has read everything: what only the file could tell.
struct source_report {
  std::uint32_t reader;
  std::shared_ptr<const recording_counts> counts; ///< of the closing index; null if there is none
  std::vector<recording_damage> damage;
  bool torn;
};

/// From a packer to an assembler: episodes of a group, by member. Answered by episodes_fetched, in
/// the same order.
struct fetch_episodes {
  group_ref group;
  std::vector<std::uint32_t> members;
};
struct episodes_fetched {
  std::vector<sealed_episode> episodes;
  std::string problem; ///< not empty: why there are none
};

/// What a packer must know of one group to gather from it.
struct bin_group {
  group_ref group;
  frame annotations; ///< GroupAnnotations
  caf::actor assembler;
};

/// From the planner to a packer: gather this micro batch and send it to `feeder`.
struct pack_bin {
  frame plan;                    ///< BinPlan
  std::vector<bin_group> groups; ///< in the order of BinPlan.groups
  caf::actor feeder;
};

/// From a packer to itself: all episodes of bin `job` are here.
struct bin_fetched {
  std::uint64_t job;
};

/// From a packer to a feeder.
struct micro_batch_packed {
  std::uint64_t step;
  std::uint32_t rank;
  std::uint32_t index;
  message parts; ///< MicroBatch
};

/// From the planner to a feeder: step `step` has so many micro batches for this rank. Comes before
/// or after them.
struct stage_step {
  std::uint64_t step;
  std::uint32_t micro_batches;
};

/// From a feeder to the planner: all micro batches of the step are here and verified.
struct step_staged {
  std::uint64_t step;
  std::uint32_t rank;
  std::vector<micro_batch_digest> digests; ///< by index
  std::uint64_t wire_bytes;
};

/// From the planner to every feeder: all ranks have staged it, it will be trained.
struct commit_step {
  std::uint64_t step;
  digest128 step_digest;
};

/// From a feeder to the trainer of its rank: a committed step. Steps come in order.
struct train_step {
  std::uint64_t step;
  digest128 step_digest;
  std::vector<micro_batch> micro_batches;
};

/// Tokens of one step that each loss component trains, over all ranks.
struct component_totals {
  std::int64_t rl = 0;
  std::int64_t ce = 0;
  std::int64_t ref_kl = 0;
};

/// From a trainer to the planner: the step is applied on all ranks.
struct step_trained {
  std::uint64_t step;
  std::uint32_t rank;
  component_totals totals;
};

/// From the supervisor to the planner, once: whom it works with. Until then it only collects.
struct start_planner {
  std::vector<caf::actor> readers;
  std::vector<caf::actor> packers;
  std::vector<caf::actor> feeders; ///< by rank
};

/// What a step came to.
struct step_report {
  std::uint64_t step = 0;
  std::uint64_t groups = 0;
  std::uint64_t traces = 0;
  std::uint64_t samples = 0;
  std::uint64_t tokens = 0;        ///< of samples, without padding and dummies
  std::uint64_t padding = 0;       ///< tokens of padding, in all micro batches
  std::uint64_t micro_batches = 0; ///< over all ranks, dummies included
  std::uint64_t dummies = 0;
  std::uint64_t wire_bytes = 0;
  digest128 digest; ///< of the step
  component_totals totals;
};

/// From the planner to the supervisor: every rank has trained the step.
struct step_done {
  step_report report;
};

/// From the planner to the supervisor: no step will follow. Unless `all_received`, groups that
/// never reached the planner are not in the ledger.
struct run_finished {
  std::shared_ptr<const ledger> entries;
  digest128 grid_hash;
  bool all_received = false; ///< every group of the source is in it
};

/// From the supervisor to the planner: begin no more steps; what is committed is trained, the rest
/// is held.
struct stop_run {
  std::string why;
};

/// From any actor to the supervisor: the run cannot go on.
struct run_failed {
  std::string who;
  error what;
};

} // namespace millrace

MILLRACE_MESSAGE(millrace::read_more)
MILLRACE_MESSAGE(millrace::permit)
MILLRACE_MESSAGE(millrace::permit_wanted)
MILLRACE_MESSAGE(millrace::frame_arrived)
MILLRACE_MESSAGE(millrace::episode_arrived)
MILLRACE_MESSAGE(millrace::episode_rejected)
MILLRACE_MESSAGE(millrace::group_sized)
MILLRACE_MESSAGE(millrace::source_ended)
MILLRACE_MESSAGE(millrace::source_report)
MILLRACE_MESSAGE(millrace::group_complete)
MILLRACE_MESSAGE(millrace::group_scored)
MILLRACE_MESSAGE(millrace::group_tombstone)
MILLRACE_MESSAGE(millrace::groups_settled)
MILLRACE_MESSAGE(millrace::fetch_episodes)
MILLRACE_MESSAGE(millrace::episodes_fetched)
MILLRACE_MESSAGE(millrace::pack_bin)
MILLRACE_MESSAGE(millrace::bin_fetched)
MILLRACE_MESSAGE(millrace::micro_batch_packed)
MILLRACE_MESSAGE(millrace::stage_step)
MILLRACE_MESSAGE(millrace::step_staged)
MILLRACE_MESSAGE(millrace::commit_step)
MILLRACE_MESSAGE(millrace::train_step)
MILLRACE_MESSAGE(millrace::step_trained)
MILLRACE_MESSAGE(millrace::start_planner)
MILLRACE_MESSAGE(millrace::step_done)
MILLRACE_MESSAGE(millrace::run_finished)
MILLRACE_MESSAGE(millrace::stop_run)
MILLRACE_MESSAGE(millrace::run_failed)
