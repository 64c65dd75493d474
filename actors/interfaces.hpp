// SPDX-License-Identifier: Apache-2.0
#pragma once

// Every message between actors, once. In a process they go by reference; those of `parcel` also go
// between processes (actors/node/codec). What they carry as `frame` or `message` are the bodies of
// schema/*.fbs. Order holds between one sender and one receiver, and, between processes, only
// within a lane: "control" messages are small and never wait for credit, all others do.

#include <chrono>
#include <compare>
#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "actors/packer/micro_batch.hpp"
#include "actors/peer.hpp"
#include "actors/planner/ledger.hpp"
#include "actors/trainer/component_totals.hpp"
#include "actors/trainer/micro_batch_digest.hpp"
#include "runtime/caf.hpp"
#include "runtime/digest.hpp"
#include "schema/log_records.hpp"
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

/// From the planner to every reader, control: groups with an ordinal below `below` may begin.
/// Groups that have begun always go on. `below` never falls.
struct permit {
  std::uint64_t below;
};

/// From a reader to the planner, control: the next record begins group `ordinal`, which has no
/// permit yet. Of this reader's groups, none below it is to come.
struct permit_wanted {
  std::uint32_t reader;
  std::uint64_t ordinal;
};

/// From the planner to every reader, control, when it changes: how far the run is. For env servers.
struct planner_progress {
  std::uint64_t version = 0;       ///< of the policy: steps that are trained
  std::uint64_t step = 0;          ///< that groups are collected for
  std::uint64_t backlog_steps = 0; ///< steps' worth of groups that wait, rounded down

  bool operator==(const planner_progress &) const = default;
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
  peer assembler;
  /// The planner that the assembler obeys: to the scorer the name alone may still stand for the one
  /// before. None: whoever has the planner's name.
  peer planner = {};
};

/// From a scorer to the planner, before it scores a group whose answer cannot be had twice: it
/// rests on what the groups before it have left behind, or on what another server says. Answered by
/// score_turn.
struct score_wanted {
  group_ref group;
  frame header;    ///< GroupHeader
  std::string key; ///< whose state it needs; empty: none
  peer assembler;
  peer scorer;
};

/// From the planner to the scorer that asked: it is the group's turn.
struct score_turn {
  group_ref group;
  bool scored = false;             ///< it has an answer already: forget the group
  std::uint64_t number = 0;        ///< of the answer in its key, from 1; 0: it has no key
  std::vector<std::uint8_t> state; ///< of the key before it; empty: none yet
};

/// How an answer that cannot be had twice follows from the one before it.
struct answer_link {
  std::string key;          ///< whose state; empty: none, and then the rest is empty, too
  std::uint64_t number = 0; ///< of the answer in its key, from 1
  std::vector<std::uint8_t> before{};
  std::vector<std::uint8_t> after{};
};

/// From a scorer to the planner.
struct group_scored {
  group_ref group;
  frame header;      ///< GroupHeader
  frame annotations; ///< GroupAnnotations
  peer assembler;
  /// If it is there the answer goes into the log before it is used, and this must fit what the log
  /// says of the key.
  std::optional<answer_link> once{};
};

/// Why a group ends without being scored.
enum class tombstone_reason : std::uint8_t {
  expired,  ///< data ended before all its episodes came
  unscored, ///< the scorer refused it: `why` says the reason
  stale,    ///< its source gave an episode of it up as stale
  dropped,  ///< it is scored as a unit, and one of its episodes failed
  overdue,  ///< its deadline passed before all its episodes came
};

/// From an assembler or a scorer to the planner, in place of group_scored: the group ends outside a
/// step.
struct group_tombstone {
  group_ref group;
  frame header; ///< GroupHeader, with what was there
  tombstone_reason reason;
  std::string why; ///< for people
  peer assembler;
};

/// From the planner to an assembler, control: it has the scores of these groups; no scorer needs to
/// be asked again.
struct groups_received {
  std::vector<group_ref> groups;
};

/// When the planner said something of a group: what it said later compares greater. What it says to
/// an assembler and what it says to a reader, who sends the group there again, arrive in any order.
struct planner_moment {
  std::uint64_t epoch = 0;
  std::uint64_t number = 0; ///< rises whenever it asks for groups

  auto operator<=>(const planner_moment &) const = default;
};

/// From the planner to assemblers and to the reader of the groups, control: these groups have their
/// end in the log; assemblers forget them, but for what was sent again at a later moment. Readers
/// keep what is not settled for good: its step may have to be made again. At most most_refs groups.
struct groups_settled {
  static constexpr std::size_t most_refs = 2048; ///< keeps the message small
  std::vector<group_ref> groups;
  bool for_good = true;
  planner_moment when{};
};

/// From a reader to the supervisor, when it has read everything: what only the file could tell.
struct source_report {
  std::uint32_t reader;
  std::shared_ptr<const recording_counts> counts; ///< of the closing index; null if there is none
  std::vector<recording_damage> damage;
  bool torn;
};

/// From a packer to an assembler, control: episodes of a group, by member. Exactly one answer:
/// episodes_fetched. Asking is the credit for the answer.
struct fetch_episodes {
  group_ref group;
  std::vector<std::uint32_t> members;
  peer packer;
  std::uint64_t job = 0; ///< of the packer; stands in the answer
};

/// From an assembler to the packer that asked, in the order of fetch_episodes::members.
struct episodes_fetched {
  std::uint64_t job = 0;
  group_ref group;
  std::vector<sealed_episode> episodes;
  std::string problem; ///< not empty: why there are none
};

/// From the planner to readers and assemblers, control: these groups are needed again, for a step
/// that has to be made again (`scored`) or since their step is no more. Who has them offers them: a
/// reader sends all it keeps of the group to an assembler, an assembler answers with group_held or
/// asks a scorer.
struct groups_wanted {
  static constexpr std::size_t most_refs = groups_settled::most_refs;
  std::vector<group_ref> groups;
  bool scored = false;
  planner_moment when{};
};

/// From a reader to an assembler: what follows is this group once more, from its first message on:
/// it is wanted again, or who had it is gone. If it is `scored`, the assembler tells the planner
/// with group_held once it is complete, in place of asking a scorer.
struct group_again {
  group_ref group;
  std::shared_ptr<const group_info> info;
  bool scored = false;
  planner_moment when{}; ///< the planner wanted it; zero: who had it is gone
};

/// From an assembler to the planner, control: it holds the bytes of this group, complete.
struct group_held {
  group_ref group;
  peer assembler;
};

/// One message of a reader about an episode: frame_arrived, episode_arrived or episode_rejected.
struct safe_message {
  static constexpr std::uint32_t whole = UINT32_MAX; ///< `frame` of an episode that is not a frame

  group_ref group;
  std::uint32_t member = 0;
  std::uint32_t attempt = 0;
  std::uint32_t frame = whole; ///< its number

  auto operator<=>(const safe_message &) const = default;
};

/// From an assembler with a journal to the reader that sent them, control: they are on its disk.
/// The reader need not keep them; from then on their group stays with that assembler, whatever
/// becomes of it. At most most_messages.
struct messages_safe {
  static constexpr std::size_t most_messages = 1024; ///< keeps the message small
  std::vector<safe_message> messages;
  peer assembler;
};

/// What a packer must know of one group to gather from it.
struct bin_group {
  group_ref group;
  frame annotations; ///< GroupAnnotations
  peer assembler;
};

/// Who speaks as the planner: of one folder, the highest epoch leads. Epochs of different folders
/// have nothing to do with each other. What binds others to a folder: docs/recovery.md, "Claims,
/// epochs, generations".
struct planner_claim {
  digest128 folder;        ///< names its state folder; made when the folder was
  std::uint64_t epoch = 0; ///< rises with its starts in that folder and its trainer jobs, from 1

  auto operator<=>(const planner_claim &) const = default;
};

/// From the planner to a packer: gather this micro batch and send it to `feeder`.
struct pack_bin {
  frame plan;                    ///< BinPlan
  std::vector<bin_group> groups; ///< in the order of BinPlan.groups
  peer feeder;
  std::uint64_t source_bytes = 0; ///< of the episodes that must be fetched for it, at most
  planner_claim claim = {};
};

/// From a packer to itself: all episodes of bin `job` are here.
struct bin_fetched {
  std::uint64_t job;
};

/// From a packer or a feeder to itself: memory was short; look whether it is still.
struct look_for_room {
  static constexpr std::chrono::milliseconds pause{10};
};

/// A micro batch's place. A later planner may cut the same step otherwise.
struct bin_ref {
  std::uint64_t step = 0;
  std::uint32_t rank = 0;
  std::uint32_t index = 0;
  planner_claim claim = {}; ///< of the planner that cut the step

  auto operator<=>(const bin_ref &) const = default;
};

/// From a packer to a feeder, control: a micro batch is gathered. The feeder fetches it when it has
/// room.
struct micro_batch_ready {
  bin_ref bin;
  std::uint64_t bytes = 0;
  peer packer;
};

/// From a feeder to the packer, control: send it. Asking is the credit for it.
struct fetch_micro_batch {
  bin_ref bin;
  peer feeder;
};

/// From a packer to a feeder, on fetch_micro_batch.
struct micro_batch_packed {
  bin_ref bin;
  message parts; ///< MicroBatch
};

/// From a feeder to the packer, control: the micro batch is here, or not needed; forget it.
struct micro_batch_taken {
  bin_ref bin;
};

/// From the planner to a feeder: step `step` has so many micro batches for this rank. Comes before
/// or after them.
struct stage_step {
  std::uint64_t step;
  std::uint32_t micro_batches;
  planner_claim claim = {};
};

/// From a feeder to the planner: all micro batches of the step are here and verified.
struct step_staged {
  std::uint64_t step;
  std::uint32_t rank;
  std::vector<micro_batch_digest> digests; ///< by index
  std::uint64_t wire_bytes;
  std::uint64_t epoch = 0; ///< of the planner that cut the step
};

/// From the planner to a feeder: all ranks have staged it and the log says so: it will be trained.
struct commit_step {
  std::uint64_t step;
  digest128 step_digest;
  planner_claim claim = {}; ///< as in all that a planner tells ranks: of a lower one it is late
  std::vector<staleness_count> staleness{}; ///< of the episodes in it, ascending
};

/// From a feeder to the trainer of its rank: a committed step. Steps come in order.
struct train_step {
  std::uint64_t step;
  digest128 step_digest;
  std::vector<micro_batch> micro_batches;
  component_totals mine{};                  ///< of this rank's micro batches
  std::vector<staleness_count> staleness{}; ///< as in commit_step
};

/// From a feeder to the planner, and from there to every feeder, control: what a rank tells all
/// ranks so that their collective can meet (addresses). `value` is bytes.
struct rank_notice {
  std::string key;
  std::string value;
};

/// From a trainer to its feeder, and from there to the planner: the step is applied on all ranks.
/// The feeder keeps it until steps_recorded.
struct step_trained {
  std::uint64_t step;
  std::uint32_t rank;
  component_totals totals;
};

/// From a planner to everyone that it works with, first of all. A reader answers with what it
/// waits for, an assembler offers what is not settled again, a scorer asks for its turns again, a
/// packer drops what it has of lower epochs, a feeder answers with rank_state.
struct planner_hello {
  planner_claim claim;
  std::uint64_t durable = 0; ///< last step that a checkpoint of all ranks holds
  /// Who says so, and gets the answers: the name alone may still stand for the one before. None:
  /// whoever has the planner's name.
  peer planner = {};
};

/// From a feeder to the planner, control: not obeyed, since a later start of it is known, or
/// another folder's.
struct planner_refused {
  planner_claim claim;
  std::string why; ///< for people
};

struct step_digest_of {
  std::uint64_t step = 0;
  digest128 digest;
};
struct step_totals {
  std::uint64_t step = 0;
  component_totals totals;
};

/// From a feeder to the planner, control: where its rank stands. Answers planner_hello, once the
/// trainer has loaded its checkpoint.
struct rank_state {
  std::uint32_t rank = 0;
  std::uint64_t epoch = 0;      ///< of the planner that asked
  std::uint64_t generation = 0; ///< that it is part of; 0: none yet
  std::uint64_t next = 0;       ///< the step that it needs next
  /// Committed steps that it holds or has trained, and has not heard of as recorded.
  std::vector<step_digest_of> committed{};
  std::vector<step_totals> trained{}; ///< of those
  std::uint64_t saved = 0;            ///< its last checkpoint
  /// The last step that its trainer holds, from a checkpoint or since. What the log calls trained
  /// may lie beyond it: an earlier job has trained that.
  std::uint64_t trained_to = 0;
};

/// From the planner to every feeder, control: all ranks are there and stand at the same step. They
/// are one trainer job until one of them is lost.
struct begin_generation {
  std::uint64_t generation = 0;
  std::uint64_t next = 0;
  planner_claim claim = {};
};

/// From the planner to the feeders of a job of which a rank is lost, control: their processes end
/// with exit code 75, to be started again.
struct end_generation {
  std::uint64_t generation = 0;
  std::string why; ///< for people
  planner_claim claim = {};
};

/// From the planner to a feeder, control: the log has it.
struct steps_recorded {
  std::uint64_t trained = 0; ///< all up to it
  std::uint64_t durable = 0; ///< all up to it: older checkpoints are not needed
  planner_claim claim = {};
};

/// From a trainer to its feeder, and from there to the planner, control: a checkpoint of this rank
/// holds all steps up to this one.
struct checkpoint_saved {
  std::uint32_t rank = 0;
  std::uint64_t step = 0;
};

/// From the planner to every feeder, and from there to its trainer, control: no step follows this
/// one; what no checkpoint holds is to be saved.
struct finish_training {
  std::uint64_t step = 0; ///< the last one
  planner_claim claim = {};
};

/// From a feeder to its trainer: go back to what a checkpoint holds; 0: begin anew. Answered by
/// checkpoint_loaded.
struct load_checkpoint {
  std::uint64_t step = 0;
  peer feeder = {};
  digest128 folder = {}; ///< the planner's: a checkpoint of another one is not loaded
};
struct checkpoint_loaded {
  std::uint64_t step = 0; ///< the last step that it holds
};

/// From a feeder to its trainer: join the ranks of this job. `feeder` hears of trained steps.
struct begin_training {
  std::uint64_t generation = 0;
  peer feeder = {};
  digest128 folder = {}; ///< the planner's; stands in the checkpoints
};

/// From the process's node to those of its actors that work with this role: take it into use.
struct peer_up {
  role what;
  peer who;
};

/// From the node: give it nothing new; what it has goes on.
struct peer_draining {
  role what;
  peer who;
};

/// From the node: it is gone, and nothing will come from it any more. What it had must be done by
/// another.
struct peer_down {
  role what;
  peer who;
  std::string why; ///< for people: "left", "lost: ..."
};

/// From the node: can_take() of a peer has become true.
struct room_came {};

/// From the supervisor to an actor: finish what you have, take nothing new, and answer `drained`
/// when another could not need you any more.
struct drain {};
/// From an actor to its supervisor.
struct drained {
  std::string who;
};

/// From the planner to every process, control: it is hungry, or no more: nothing is packed beyond
/// the step in training and no step can be cut. While it lasts, memory.limit does not stop groups
/// that have begun.
struct hunger {
  bool hungry = false;
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
  /// Step 1: bytes of episodes that the assemblers' memory.limit must carry together, if all groups
  /// are like those of this step. Else 0.
  std::uint64_t assemblers_must_carry = 0;
  digest128 digest; ///< of the step
  component_totals totals;
  std::vector<staleness_count> staleness{}; ///< of the episodes in it, ascending
  sample_lengths kept_lengths{};            ///< of its samples
  sample_lengths stale_lengths{};           ///< of those that were too old for it
};

/// From the planner to the supervisor: every rank has trained the step.
struct step_done {
  step_report report;
};

/// From the planner to the supervisor: a line that people are to see beside the steps'.
struct run_note {
  std::string text;
};

/// From the planner to the supervisor: no step will follow. Unless `all_received`, groups that
/// never reached the planner are not in the ledger.
struct run_finished {
  std::shared_ptr<const ledger> entries;
  digest128 grid_hash;
  std::vector<step_report> steps; ///< all that count, those of earlier starts too
  bool all_received = false;      ///< every group of the source is in it
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

/// A message that goes to an actor of another process. The order is that of wire::ActorMessage:
/// append only.
struct parcel {
  std::variant<frame_arrived, episode_arrived, episode_rejected, group_sized, source_ended,
               permit_wanted, permit, hunger, group_complete, group_scored, group_tombstone,
               groups_received, groups_settled, pack_bin, fetch_episodes, episodes_fetched,
               micro_batch_ready, fetch_micro_batch, micro_batch_packed, micro_batch_taken,
               stage_step, step_staged, commit_step, rank_notice, step_trained, run_failed,
               planner_hello, planner_refused, rank_state, begin_generation, end_generation,
               steps_recorded, checkpoint_saved, groups_wanted, group_again, group_held,
               finish_training, score_wanted, score_turn, planner_progress, messages_safe>
      what;
};

namespace detail {
template <class Message, class Variant> inline constexpr bool is_in = false;
template <class Message, class... Kinds>
inline constexpr bool is_in<Message, std::variant<Kinds...>> = (std::same_as<Message, Kinds> ||
                                                                ...);
} // namespace detail

/// Whether a message may go to an actor of another process.
template <class Message>
inline constexpr bool is_parcel = detail::is_in<Message, decltype(parcel::what)>;

template <class Message> void peer::send(Message what) const {
  if (local_) {
    caf::anon_send(local_, std::move(what));
  } else if constexpr (is_parcel<Message>) {
    MILLRACE_ASSERT(remote_, "a message to nobody");
    remote_->send(parcel{std::move(what)});
  } else {
    MILLRACE_ASSERT(false, "{} is in another process and gets a message that stays in one",
                    id_.name);
  }
}

/// Sends a message to an actor, here or in another process.
template <class Message> void tell(const peer &whom, Message what) { whom.send(std::move(what)); }

} // namespace millrace

MILLRACE_MESSAGE(millrace::read_more)
MILLRACE_MESSAGE(millrace::permit)
MILLRACE_MESSAGE(millrace::permit_wanted)
MILLRACE_MESSAGE(millrace::planner_progress)
MILLRACE_MESSAGE(millrace::frame_arrived)
MILLRACE_MESSAGE(millrace::episode_arrived)
MILLRACE_MESSAGE(millrace::episode_rejected)
MILLRACE_MESSAGE(millrace::group_sized)
MILLRACE_MESSAGE(millrace::source_ended)
MILLRACE_MESSAGE(millrace::source_report)
MILLRACE_MESSAGE(millrace::group_complete)
MILLRACE_MESSAGE(millrace::group_scored)
MILLRACE_MESSAGE(millrace::score_wanted)
MILLRACE_MESSAGE(millrace::score_turn)
MILLRACE_MESSAGE(millrace::group_tombstone)
MILLRACE_MESSAGE(millrace::groups_received)
MILLRACE_MESSAGE(millrace::groups_settled)
MILLRACE_MESSAGE(millrace::fetch_episodes)
MILLRACE_MESSAGE(millrace::episodes_fetched)
MILLRACE_MESSAGE(millrace::pack_bin)
MILLRACE_MESSAGE(millrace::bin_fetched)
MILLRACE_MESSAGE(millrace::look_for_room)
MILLRACE_MESSAGE(millrace::micro_batch_ready)
MILLRACE_MESSAGE(millrace::fetch_micro_batch)
MILLRACE_MESSAGE(millrace::micro_batch_packed)
MILLRACE_MESSAGE(millrace::micro_batch_taken)
MILLRACE_MESSAGE(millrace::stage_step)
MILLRACE_MESSAGE(millrace::step_staged)
MILLRACE_MESSAGE(millrace::commit_step)
MILLRACE_MESSAGE(millrace::train_step)
MILLRACE_MESSAGE(millrace::rank_notice)
MILLRACE_MESSAGE(millrace::step_trained)
MILLRACE_MESSAGE(millrace::planner_hello)
MILLRACE_MESSAGE(millrace::planner_refused)
MILLRACE_MESSAGE(millrace::rank_state)
MILLRACE_MESSAGE(millrace::begin_generation)
MILLRACE_MESSAGE(millrace::end_generation)
MILLRACE_MESSAGE(millrace::steps_recorded)
MILLRACE_MESSAGE(millrace::checkpoint_saved)
MILLRACE_MESSAGE(millrace::finish_training)
MILLRACE_MESSAGE(millrace::load_checkpoint)
MILLRACE_MESSAGE(millrace::checkpoint_loaded)
MILLRACE_MESSAGE(millrace::begin_training)
MILLRACE_MESSAGE(millrace::groups_wanted)
MILLRACE_MESSAGE(millrace::group_again)
MILLRACE_MESSAGE(millrace::group_held)
MILLRACE_MESSAGE(millrace::messages_safe)
MILLRACE_MESSAGE(millrace::peer_up)
MILLRACE_MESSAGE(millrace::peer_draining)
MILLRACE_MESSAGE(millrace::peer_down)
MILLRACE_MESSAGE(millrace::room_came)
MILLRACE_MESSAGE(millrace::drain)
MILLRACE_MESSAGE(millrace::drained)
MILLRACE_MESSAGE(millrace::hunger)
MILLRACE_MESSAGE(millrace::step_done)
MILLRACE_MESSAGE(millrace::run_finished)
MILLRACE_MESSAGE(millrace::run_note)
MILLRACE_MESSAGE(millrace::stop_run)
MILLRACE_MESSAGE(millrace::run_failed)
