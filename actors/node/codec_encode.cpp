// SPDX-License-Identifier: Apache-2.0
#include "actors/node/codec.hpp"

#include <type_traits>

#include "runtime/utf8.hpp"
#include "schema/limits.hpp"
#include "schema/wire_digest.hpp"

namespace millrace {

namespace {

using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;

/// What is known of a message while it is written: its envelope, and the parts after it.
struct writer {
  FlatBufferBuilder builder;
  message parts = message(1); ///< [0] is the envelope's place

  void attach(const frame &part) { parts.push_back(part); }
  void attach(const message &some) { parts.insert(parts.end(), some.begin(), some.end()); }

  Offset<flatbuffers::String> text(std::string_view value) { return builder.CreateString(value); }
  /// For people.
  Offset<flatbuffers::String> prose(std::string_view value) {
    return text(utf8_prefix(value, limits::text_bytes));
  }

  Offset<wire::PeerId> id_of(const peer &who) {
    MILLRACE_ASSERT(!who.id().name.empty(),
                    "a message to another process names an actor that has no id");
    const auto name = text(who.id().name);
    return wire::CreatePeerId(builder, name, who.id().incarnation);
  }

  Offset<wire::GroupInfo> info_of(const std::shared_ptr<const group_info> &info) {
    MILLRACE_ASSERT(info, "a message of a group without what is known of it");
    const auto key = create_key(builder, info->key);
    const auto source = text(info->source);
    return wire::CreateGroupInfo(builder, key, source, info->size);
  }

  auto places_of(const std::vector<group_ref> &groups) {
    std::vector<wire::GroupPlace> places;
    places.reserve(groups.size());
    for (const auto &group : groups)
      places.emplace_back(group.ordinal, group.source);
    return builder.CreateVectorOfStructs(places);
  }
};

wire::GroupPlace place_of(const group_ref &group) { return {group.ordinal, group.source}; }
wire::PlannerMoment moment_of(const planner_moment &when) { return {when.epoch, when.number}; }
wire::BinPlace place_of(const bin_ref &bin) {
  return {bin.step, bin.rank, bin.index, bin.claim.epoch, digest_of(bin.claim.folder)};
}

auto write(writer &out, const frame_arrived &in) {
  const auto group = place_of(in.group);
  out.attach(in.part.parts());
  const auto info = out.info_of(in.info);
  return wire::CreateFrameArrived(out.builder, &group, info, in.member);
}

auto write(writer &out, const episode_arrived &in) {
  const auto group = place_of(in.group);
  out.attach(in.episode.parts());
  const auto info = out.info_of(in.info);
  return wire::CreateEpisodeArrived(out.builder, &group, info, in.member);
}

auto write(writer &out, const episode_rejected &in) {
  const auto group = place_of(in.group);
  const auto info = out.info_of(in.info);
  const auto id = out.text(in.id);
  const auto reason = out.prose(in.reason);
  return wire::CreateEpisodeRejected(out.builder, &group, info, in.member, id, in.attempt, reason);
}

auto write(writer &out, const group_sized &in) {
  const auto group = place_of(in.group);
  const auto info = out.info_of(in.info);
  return wire::CreateGroupSized(out.builder, &group, info);
}

auto write(writer &out, const source_ended &in) {
  return wire::CreateSourceEnded(out.builder, in.reader, in.groups);
}

auto write(writer &out, const permit_wanted &in) {
  return wire::CreatePermitWanted(out.builder, in.reader, in.ordinal);
}

auto write(writer &out, const permit &in) { return wire::CreatePermit(out.builder, in.below); }

auto write(writer &out, const hunger &in) { return wire::CreateHunger(out.builder, in.hungry); }

auto write(writer &out, const group_complete &in) {
  const auto group = place_of(in.group);
  out.attach(in.header);
  const auto assembler = out.id_of(in.assembler);
  const auto planner = in.planner ? out.id_of(in.planner) : Offset<wire::PeerId>();
  return wire::CreateGroupComplete(out.builder, &group, assembler, planner);
}

auto write(writer &out, const group_scored &in) {
  const auto group = place_of(in.group);
  out.attach(in.header);
  out.attach(in.annotations);
  const auto assembler = out.id_of(in.assembler);
  Offset<wire::AnswerLink> once;
  if (in.once) {
    const auto key = out.text(in.once->key);
    const auto before = out.builder.CreateVector(in.once->before);
    const auto after = out.builder.CreateVector(in.once->after);
    once = wire::CreateAnswerLink(out.builder, key, in.once->number, before, after);
  }
  return wire::CreateGroupScored(out.builder, &group, assembler, once);
}

auto write(writer &out, const group_tombstone &in) {
  const auto group = place_of(in.group);
  out.attach(in.header);
  const auto why = out.prose(in.why);
  const auto assembler = out.id_of(in.assembler);
  return wire::CreateGroupTombstone(out.builder, &group,
                                    static_cast<wire::TombstoneReason>(in.reason), why, assembler);
}

auto write(writer &out, const groups_received &in) {
  const auto groups = out.places_of(in.groups);
  return wire::CreateGroupsReceived(out.builder, groups);
}

auto write(writer &out, const groups_settled &in) {
  const auto groups = out.places_of(in.groups);
  const auto when = moment_of(in.when);
  return wire::CreateGroupsSettled(out.builder, groups, in.for_good, &when);
}

Offset<wire::PlannerClaim> claim_of(writer &out, const planner_claim &in) {
  const auto folder = digest_of(in.folder);
  return wire::CreatePlannerClaim(out.builder, &folder, in.epoch);
}

auto write(writer &out, const pack_bin &in) {
  out.attach(in.plan);
  std::vector<Offset<wire::BinGroup>> groups;
  groups.reserve(in.groups.size());
  for (const auto &one : in.groups) {
    const auto group = place_of(one.group);
    out.attach(one.annotations);
    const auto assembler = out.id_of(one.assembler);
    groups.push_back(wire::CreateBinGroup(out.builder, &group, assembler));
  }
  const auto list = out.builder.CreateVector(groups);
  const auto feeder = out.id_of(in.feeder);
  const auto claim = claim_of(out, in.claim);
  return wire::CreatePackBin(out.builder, list, feeder, in.source_bytes, claim);
}

auto write(writer &out, const fetch_episodes &in) {
  const auto group = place_of(in.group);
  const auto members = out.builder.CreateVector(in.members);
  const auto packer = out.id_of(in.packer);
  return wire::CreateFetchEpisodes(out.builder, &group, members, packer, in.job);
}

/// Episodes that do not fit into one message become a problem: whoever asked would wait forever.
std::string problem_of(const episodes_fetched &in) {
  std::size_t parts = 1;
  for (const auto &episode : in.episodes)
    parts += episode.parts().size();
  if (parts <= limits::parts)
    return in.problem;
  return fmt::format("{} episodes of {} parts are too many for one message, at most {} are allowed",
                     in.episodes.size(), parts, limits::parts);
}

auto write(writer &out, const episodes_fetched &in) {
  const auto group = place_of(in.group);
  const auto why_none = problem_of(in);
  std::vector<std::uint32_t> counts;
  if (why_none.empty()) {
    counts.reserve(in.episodes.size());
    for (const auto &episode : in.episodes) {
      out.attach(episode.parts());
      counts.push_back(static_cast<std::uint32_t>(episode.parts().size()));
    }
  }
  const auto list = out.builder.CreateVector(counts);
  const auto problem = out.prose(why_none);
  return wire::CreateEpisodesFetched(out.builder, in.job, &group, list, problem);
}

auto write(writer &out, const micro_batch_ready &in) {
  const auto bin = place_of(in.bin);
  const auto packer = out.id_of(in.packer);
  return wire::CreateMicroBatchReady(out.builder, &bin, in.bytes, packer);
}

auto write(writer &out, const fetch_micro_batch &in) {
  const auto bin = place_of(in.bin);
  const auto feeder = out.id_of(in.feeder);
  return wire::CreateFetchMicroBatch(out.builder, &bin, feeder);
}

auto write(writer &out, const micro_batch_packed &in) {
  const auto bin = place_of(in.bin);
  out.attach(in.parts);
  return wire::CreateMicroBatchPacked(out.builder, &bin);
}

auto write(writer &out, const micro_batch_taken &in) {
  const auto bin = place_of(in.bin);
  return wire::CreateMicroBatchTaken(out.builder, &bin);
}

auto write(writer &out, const stage_step &in) {
  const auto claim = claim_of(out, in.claim);
  return wire::CreateStageStep(out.builder, in.step, in.micro_batches, claim);
}

auto write(writer &out, const step_staged &in) {
  std::vector<wire::MicroBatchDigest> digests;
  digests.reserve(in.digests.size());
  for (const auto &one : in.digests)
    digests.emplace_back(one.rank, one.index, digest_of(one.digest));
  const auto list = out.builder.CreateVectorOfStructs(digests);
  return wire::CreateStepStaged(out.builder, in.step, in.rank, list, in.wire_bytes, in.epoch);
}

auto write(writer &out, const commit_step &in) {
  const auto digest = digest_of(in.step_digest);
  const auto claim = claim_of(out, in.claim);
  std::vector<wire::StalenessCount> rows;
  rows.reserve(in.staleness.size());
  for (const auto &row : in.staleness)
    rows.emplace_back(row.staleness, row.episodes);
  const auto staleness = out.builder.CreateVectorOfStructs(rows);
  return wire::CreateCommitStep(out.builder, in.step, &digest, claim, staleness);
}

auto write(writer &out, const rank_notice &in) {
  const auto key = out.text(in.key);
  const auto value = out.builder.CreateVector(
      reinterpret_cast<const std::uint8_t *>(in.value.data()), in.value.size());
  return wire::CreateRankNotice(out.builder, key, value);
}

auto write(writer &out, const step_trained &in) {
  return wire::CreateStepTrained(out.builder, in.step, in.rank, in.totals.rl, in.totals.ce,
                                 in.totals.ref_kl);
}

auto write(writer &out, const run_failed &in) {
  const auto who = out.text(in.who);
  const auto text = out.prose(in.what.message);
  return wire::CreateRunFailed(out.builder, who, static_cast<std::uint16_t>(in.what.code), text);
}

auto write(writer &out, const planner_hello &in) {
  const auto claim = claim_of(out, in.claim);
  const auto planner = in.planner ? out.id_of(in.planner) : Offset<wire::PeerId>();
  return wire::CreatePlannerHello(out.builder, claim, in.durable, planner);
}

auto write(writer &out, const planner_refused &in) {
  const auto claim = claim_of(out, in.claim);
  const auto why = out.prose(in.why);
  return wire::CreatePlannerRefused(out.builder, claim, why);
}

auto write(writer &out, const rank_state &in) {
  std::vector<wire::StepDigest> committed;
  for (const auto &one : in.committed)
    committed.emplace_back(one.step, digest_of(one.digest));
  std::vector<wire::StepTotals> trained;
  for (const auto &[step, totals] : in.trained)
    trained.emplace_back(step, totals.rl, totals.ce, totals.ref_kl);
  const auto committed_at = out.builder.CreateVectorOfStructs(committed);
  const auto trained_at = out.builder.CreateVectorOfStructs(trained);
  return wire::CreateRankState(out.builder, in.rank, in.epoch, in.generation, in.next, committed_at,
                               trained_at, in.saved, in.trained_to);
}

auto write(writer &out, const begin_generation &in) {
  const auto claim = claim_of(out, in.claim);
  return wire::CreateBeginGeneration(out.builder, in.generation, in.next, claim);
}

auto write(writer &out, const end_generation &in) {
  const auto why = out.prose(in.why);
  const auto claim = claim_of(out, in.claim);
  return wire::CreateEndGeneration(out.builder, in.generation, why, claim);
}

auto write(writer &out, const steps_recorded &in) {
  const auto claim = claim_of(out, in.claim);
  return wire::CreateStepsRecorded(out.builder, in.trained, in.durable, claim);
}

auto write(writer &out, const checkpoint_saved &in) {
  return wire::CreateCheckpointSaved(out.builder, in.rank, in.step);
}

auto write(writer &out, const groups_wanted &in) {
  const auto groups = out.places_of(in.groups);
  const auto when = moment_of(in.when);
  return wire::CreateGroupsWanted(out.builder, groups, in.scored, &when);
}

auto write(writer &out, const group_again &in) {
  const auto group = place_of(in.group);
  const auto info = out.info_of(in.info);
  const auto when = moment_of(in.when);
  return wire::CreateGroupAgain(out.builder, &group, info, in.scored, &when);
}

auto write(writer &out, const score_wanted &in) {
  const auto group = place_of(in.group);
  out.attach(in.header);
  const auto key = out.text(in.key);
  const auto assembler = out.id_of(in.assembler);
  const auto asker = out.id_of(in.scorer);
  return wire::CreateScoreWanted(out.builder, &group, key, assembler, asker);
}

auto write(writer &out, const score_turn &in) {
  const auto group = place_of(in.group);
  const auto state = out.builder.CreateVector(in.state);
  return wire::CreateScoreTurn(out.builder, &group, in.scored, in.number, state);
}

auto write(writer &out, const finish_training &in) {
  const auto claim = claim_of(out, in.claim);
  return wire::CreateFinishTraining(out.builder, in.step, claim);
}

auto write(writer &out, const planner_progress &in) {
  return wire::CreatePlannerProgress(out.builder, in.version, in.step, in.backlog_steps);
}

auto write(writer &out, const group_held &in) {
  const auto group = place_of(in.group);
  const auto assembler = out.id_of(in.assembler);
  return wire::CreateGroupHeld(out.builder, &group, assembler);
}

auto write(writer &out, const messages_safe &in) {
  std::vector<wire::SafeMessage> messages;
  messages.reserve(in.messages.size());
  for (const auto &one : in.messages)
    messages.emplace_back(place_of(one.group), one.member, one.attempt, one.frame);
  const auto list = out.builder.CreateVectorOfStructs(messages);
  const auto assembler = out.id_of(in.assembler);
  return wire::CreateMessagesSafe(out.builder, list, assembler);
}

template <class T, class... Others> constexpr bool is_one_of = (std::is_same_v<T, Others> || ...);

/// Small, and must never wait for credit. source_ended also goes to the planner, where it might;
/// to an assembler it must stay behind the episodes.
template <class Message>
constexpr bool is_control =
    is_one_of<Message, permit_wanted, permit, hunger, groups_received, groups_settled,
              fetch_episodes, micro_batch_ready, fetch_micro_batch, micro_batch_taken, stage_step,
              step_staged, commit_step, rank_notice, step_trained, run_failed, planner_hello,
              planner_refused, rank_state, begin_generation, end_generation, steps_recorded,
              checkpoint_saved, groups_wanted, group_held, finish_training, planner_progress,
              messages_safe>;

template <class Message>
constexpr bool is_answer = is_one_of<Message, episodes_fetched, micro_batch_packed, score_turn>;

template <class Table> constexpr wire::ActorMessage type_of(Offset<Table>) {
  return wire::ActorMessageTraits<Table>::enum_value;
}

} // namespace

encoded_parcel encode(const parcel &what, std::string_view to) {
  writer out;
  encoded_parcel done;
  auto type = wire::ActorMessage::NONE;
  Offset<void> table_at;
  std::visit(
      [&]<class Message>(const Message &in) {
        const auto table = write(out, in);
        type = type_of(table);
        table_at = table.Union();
        done.where = is_control<Message> ? lane::control : lane::data;
        done.asked_for = is_answer<Message>;
      },
      what.what);
  const auto name = out.text(to);
  const auto root = wire::CreateActorEnvelope(out.builder, name, type, table_at);
  out.parts.front() = finish_body<wire::ActorEnvelope>(out.builder, root);
  if (out.parts.front().size() > link_limits{}.control_bytes)
    done.where = lane::data;
  done.parts = std::move(out.parts);
  return done;
}

} // namespace millrace
