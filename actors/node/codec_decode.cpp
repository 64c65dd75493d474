// SPDX-License-Identifier: Apache-2.0
#include "actors/node/codec.hpp"

#include <array>
#include <type_traits>
#include <utility>

#include "actors/node/parcel_reader.hpp"
#include "schema/limits.hpp"

namespace millrace {

namespace {

using variant_type = decltype(parcel::what);

constexpr std::array<std::string_view, std::variant_size_v<variant_type>> names{
    "frame_arrived",
    "episode_arrived",
    "episode_rejected",
    "group_sized",
    "source_ended",
    "permit_wanted",
    "permit",
    "hunger",
    "group_complete",
    "group_scored",
    "group_tombstone",
    "groups_received",
    "groups_settled",
    "pack_bin",
    "fetch_episodes",
    "episodes_fetched",
    "micro_batch_ready",
    "fetch_micro_batch",
    "micro_batch_packed",
    "micro_batch_taken",
    "stage_step",
    "step_staged",
    "commit_step",
    "rank_notice",
    "step_trained",
    "run_failed",
    "planner_hello",
    "planner_refused",
    "rank_state",
    "begin_generation",
    "end_generation",
    "steps_recorded",
    "checkpoint_saved",
    "groups_wanted",
    "group_again",
    "group_held",
    "finish_training",
    "score_wanted",
    "score_turn",
    "planner_progress",
    "messages_safe"};

result<frame_arrived> read(parcel_reader &in, const wire::FrameArrived &table) {
  const auto group = in.group(table.group());
  auto info = in.info(table.info());
  const auto member = in.member(table.member());
  auto part = episode_frame::parse(in.all_parts(), in.meter());
  if (!part) {
    in.refuse(part.error(), "part");
    return in.failure();
  }
  if (!in.ok())
    return in.failure();
  return frame_arrived{group, std::move(info), member, std::move(*part)};
}

result<episode_arrived> read(parcel_reader &in, const wire::EpisodeArrived &table) {
  return in.done(episode_arrived{in.group(table.group()), in.info(table.info()),
                                 in.member(table.member()),
                                 in.episode(in.part_count(), "episode")});
}

result<episode_rejected> read(parcel_reader &in, const wire::EpisodeRejected &table) {
  in.expect_parts(0);
  return in.done(episode_rejected{in.group(table.group()), in.info(table.info()),
                                  in.member(table.member()), in.text(table.id(), "id"),
                                  table.attempt(),
                                  in.text(table.reason(), "reason", limits::text_bytes)});
}

result<group_sized> read(parcel_reader &in, const wire::GroupSized &table) {
  in.expect_parts(0);
  return in.done(group_sized{in.group(table.group()), in.info(table.info())});
}

result<source_ended> read(parcel_reader &in, const wire::SourceEnded &table) {
  in.expect_parts(0);
  return in.done(source_ended{table.reader(), table.groups()});
}

result<permit_wanted> read(parcel_reader &in, const wire::PermitWanted &table) {
  in.expect_parts(0);
  return in.done(permit_wanted{table.reader(), table.ordinal()});
}

result<permit> read(parcel_reader &in, const wire::Permit &table) {
  in.expect_parts(0);
  return in.done(permit{table.below()});
}

result<hunger> read(parcel_reader &in, const wire::Hunger &table) {
  in.expect_parts(0);
  return in.done(hunger{table.hungry()});
}

result<group_complete> read(parcel_reader &in, const wire::GroupComplete &table) {
  in.expect_parts(1);
  return in.done(
      group_complete{in.group(table.group()), in.next_frame<wire::GroupHeader>("header"),
                     in.who(table.assembler(), "assembler"),
                     table.planner() == nullptr ? peer() : in.who(table.planner(), "planner")});
}

std::optional<answer_link> link_of(parcel_reader &in, const wire::AnswerLink *table) {
  if (table == nullptr)
    return std::nullopt;
  return answer_link{in.text(table->key(), "once.key"), table->number(),
                     in.bytes(table->before(), "once.before"),
                     in.bytes(table->after(), "once.after")};
}

result<group_scored> read(parcel_reader &in, const wire::GroupScored &table) {
  in.expect_parts(2);
  return in.done(group_scored{in.group(table.group()), in.next_frame<wire::GroupHeader>("header"),
                              in.next_frame<wire::GroupAnnotations>("annotations"),
                              in.who(table.assembler(), "assembler"), link_of(in, table.once())});
}

result<group_tombstone> read(parcel_reader &in, const wire::GroupTombstone &table) {
  in.expect_parts(1);
  return in.done(group_tombstone{
      in.group(table.group()), in.next_frame<wire::GroupHeader>("header"),
      in.one_of(table.reason(), tombstone_reason::overdue, "reason"),
      in.text(table.why(), "why", limits::text_bytes), in.who(table.assembler(), "assembler")});
}

result<groups_received> read(parcel_reader &in, const wire::GroupsReceived &table) {
  in.expect_parts(0);
  return in.done(groups_received{in.groups(table.groups())});
}

result<groups_settled> read(parcel_reader &in, const wire::GroupsSettled &table) {
  in.expect_parts(0);
  return in.done(
      groups_settled{in.groups(table.groups()), table.for_good(), in.moment(table.when())});
}

result<pack_bin> read(parcel_reader &in, const wire::PackBin &table) {
  const std::size_t count = table.groups() == nullptr ? 0 : table.groups()->size();
  in.expect_parts(1 + std::uint64_t{count});
  pack_bin out;
  if (const auto plan = in.next_body<wire::BinPlan>("plan")) {
    const std::size_t planned = (*plan)->groups() == nullptr ? 0 : (*plan)->groups()->size();
    if (planned != count)
      in.refuse(errc::bad_value, "groups", "{} for a plan of {}", count, planned);
    out.plan = plan->bytes();
  }
  out.groups =
      in.list<bin_group>(table.groups(), "groups", limits::parts, [&in](const wire::BinGroup *one) {
        return bin_group{in.group(one->group()),
                         in.next_frame<wire::GroupAnnotations>("groups.annotations"),
                         in.who(one->assembler(), "groups.assembler")};
      });
  out.feeder = in.who(table.feeder(), "feeder");
  out.source_bytes = table.source_bytes();
  out.claim = in.claim(table.claim());
  return in.done(std::move(out));
}

result<fetch_episodes> read(parcel_reader &in, const wire::FetchEpisodes &table) {
  in.expect_parts(0);
  return in.done(
      fetch_episodes{in.group(table.group()),
                     in.list<std::uint32_t>(table.members(), "members", limits::list_entries,
                                            [](std::uint32_t member) { return member; }),
                     in.who(table.packer(), "packer"), table.job()});
}

result<episodes_fetched> read(parcel_reader &in, const wire::EpisodesFetched &table) {
  std::uint64_t sum = 0;
  for (const auto count : span_of(table.parts()))
    sum += count;
  in.expect_parts(sum);
  return in.done(episodes_fetched{
      table.job(), in.group(table.group()),
      in.list<sealed_episode>(table.parts(), "episodes", limits::parts,
                              [&in](std::uint32_t count) { return in.episode(count, "episodes"); }),
      in.text(table.problem(), "problem", limits::text_bytes)});
}

result<micro_batch_ready> read(parcel_reader &in, const wire::MicroBatchReady &table) {
  in.expect_parts(0);
  return in.done(
      micro_batch_ready{in.bin(table.bin()), table.bytes(), in.who(table.packer(), "packer")});
}

result<fetch_micro_batch> read(parcel_reader &in, const wire::FetchMicroBatch &table) {
  in.expect_parts(0);
  return in.done(fetch_micro_batch{in.bin(table.bin()), in.who(table.feeder(), "feeder")});
}

/// The feeder checks the rest of a micro batch (micro_batch::parse): it knows its limits.
result<micro_batch_packed> read(parcel_reader &in, const wire::MicroBatchPacked &table) {
  micro_batch_packed out{in.bin(table.bin()), in.all_parts()};
  if (out.parts.empty())
    in.refuse(errc::bad_format, "parts", "there are none");
  else if (auto batch = parse<wire::MicroBatch>(out.parts.front(), in.meter()))
    out.parts.front() = batch->bytes();
  else
    in.refuse(std::move(batch).error(), "parts");
  return in.done(std::move(out));
}

result<micro_batch_taken> read(parcel_reader &in, const wire::MicroBatchTaken &table) {
  in.expect_parts(0);
  return in.done(micro_batch_taken{in.bin(table.bin())});
}

result<stage_step> read(parcel_reader &in, const wire::StageStep &table) {
  in.expect_parts(0);
  return in.done(stage_step{table.step(),
                            in.count(table.micro_batches(), "micro_batches", limits::list_entries),
                            in.claim(table.claim())});
}

result<step_staged> read(parcel_reader &in, const wire::StepStaged &table) {
  in.expect_parts(0);
  return in.done(step_staged{
      table.step(), table.rank(),
      in.list<micro_batch_digest>(
          table.digests(), "digests", limits::list_entries,
          [](const wire::MicroBatchDigest *one) {
            return micro_batch_digest{one->rank(), one->index(), digest_of(one->digest())};
          }),
      table.wire_bytes(), table.epoch()});
}

result<commit_step> read(parcel_reader &in, const wire::CommitStep &table) {
  in.expect_parts(0);
  const auto *digest = in.required(table.step_digest(), "step_digest");
  return in.done(commit_step{
      table.step(), digest == nullptr ? digest128{} : digest_of(*digest), in.claim(table.claim()),
      in.list<staleness_count>(table.staleness(), "staleness", limits::list_entries,
                               [](const wire::StalenessCount *row) {
                                 return staleness_count{row->staleness(), row->episodes()};
                               })});
}

result<rank_notice> read(parcel_reader &in, const wire::RankNotice &table) {
  in.expect_parts(0);
  rank_notice out{in.text(table.key(), "key"), {}};
  const auto value = span_of(table.value());
  in.count(value.size(), "value", limits::notice_bytes);
  if (in.ok())
    out.value.assign(value.begin(), value.end());
  return in.done(std::move(out));
}

result<step_trained> read(parcel_reader &in, const wire::StepTrained &table) {
  in.expect_parts(0);
  return in.done(
      step_trained{table.step(), table.rank(), {table.rl(), table.ce(), table.ref_kl()}});
}

result<run_failed> read(parcel_reader &in, const wire::RunFailed &table) {
  in.expect_parts(0);
  if (table.code() == 0)
    in.refuse(errc::bad_value, "code", "0 is no kind of failure");
  return in.done(run_failed{in.text(table.who(), "who"),
                            {in.one_of(table.code(), errc::no_space, "code"),
                             in.text(table.text(), "text", limits::text_bytes)}});
}

result<planner_hello> read(parcel_reader &in, const wire::PlannerHello &table) {
  in.expect_parts(0);
  return in.done(
      planner_hello{in.claim(table.claim()), table.durable(),
                    table.planner() == nullptr ? peer() : in.who(table.planner(), "planner")});
}

result<planner_refused> read(parcel_reader &in, const wire::PlannerRefused &table) {
  in.expect_parts(0);
  return in.done(
      planner_refused{in.claim(table.claim()), in.text(table.why(), "why", limits::text_bytes)});
}

result<rank_state> read(parcel_reader &in, const wire::RankState &table) {
  in.expect_parts(0);
  rank_state out{table.rank(), table.epoch(), table.generation(), table.next(), {}, {}, 0};
  out.committed = in.list<step_digest_of>(
      table.committed(), "committed", limits::list_entries, [](const wire::StepDigest *one) {
        return step_digest_of{one->step(), digest_of(one->digest())};
      });
  out.trained = in.list<step_totals>(
      table.trained(), "trained", limits::list_entries, [](const wire::StepTotals *one) {
        return step_totals{one->step(), {one->rl(), one->ce(), one->ref_kl()}};
      });
  out.saved = table.saved();
  out.trained_to = table.trained_to();
  return in.done(std::move(out));
}

result<begin_generation> read(parcel_reader &in, const wire::BeginGeneration &table) {
  in.expect_parts(0);
  return in.done(begin_generation{table.generation(), table.next(), in.claim(table.claim())});
}

result<end_generation> read(parcel_reader &in, const wire::EndGeneration &table) {
  in.expect_parts(0);
  return in.done(end_generation{table.generation(), in.text(table.why(), "why", limits::text_bytes),
                                in.claim(table.claim())});
}

result<steps_recorded> read(parcel_reader &in, const wire::StepsRecorded &table) {
  in.expect_parts(0);
  return in.done(steps_recorded{table.trained(), table.durable(), in.claim(table.claim())});
}

result<checkpoint_saved> read(parcel_reader &in, const wire::CheckpointSaved &table) {
  in.expect_parts(0);
  return in.done(checkpoint_saved{table.rank(), table.step()});
}

result<groups_wanted> read(parcel_reader &in, const wire::GroupsWanted &table) {
  in.expect_parts(0);
  return in.done(groups_wanted{in.groups(table.groups()), table.scored(), in.moment(table.when())});
}

result<group_again> read(parcel_reader &in, const wire::GroupAgain &table) {
  in.expect_parts(0);
  return in.done(group_again{in.group(table.group()), in.info(table.info()), table.scored(),
                             in.moment(table.when())});
}

result<group_held> read(parcel_reader &in, const wire::GroupHeld &table) {
  in.expect_parts(0);
  return in.done(group_held{in.group(table.group()), in.who(table.assembler(), "assembler")});
}

result<finish_training> read(parcel_reader &in, const wire::FinishTraining &table) {
  in.expect_parts(0);
  return in.done(finish_training{table.step(), in.claim(table.claim())});
}

result<score_wanted> read(parcel_reader &in, const wire::ScoreWanted &table) {
  in.expect_parts(1);
  return in.done(score_wanted{in.group(table.group()), in.next_frame<wire::GroupHeader>("header"),
                              in.text(table.key(), "key"), in.who(table.assembler(), "assembler"),
                              in.who(table.scorer(), "scorer")});
}

result<score_turn> read(parcel_reader &in, const wire::ScoreTurn &table) {
  in.expect_parts(0);
  return in.done(score_turn{in.group(table.group()), table.scored(), table.number(),
                            in.bytes(table.state(), "state")});
}

result<planner_progress> read(parcel_reader &in, const wire::PlannerProgress &table) {
  in.expect_parts(0);
  return in.done(planner_progress{table.version(), table.step(), table.backlog_steps()});
}

result<messages_safe> read(parcel_reader &in, const wire::MessagesSafe &table) {
  in.expect_parts(0);
  return in.done(messages_safe{
      in.list<safe_message>(table.messages(), "messages", limits::list_entries,
                            [&in](const wire::SafeMessage *one) {
                              return safe_message{in.group(&one->group()), in.member(one->member()),
                                                  one->attempt(), one->frame()};
                            }),
      in.who(table.assembler(), "assembler")});
}

using read_function = result<variant_type> (*)(parcel_reader &, const void *);

template <class Table> result<variant_type> read_as(parcel_reader &in, const void *table) {
  auto found = read(in, *static_cast<const Table *>(table));
  if (!found)
    return tl::unexpected(std::move(found).error());
  return variant_type(std::move(*found));
}

/// Proves that the tables stand in the order of both parcel and wire::ActorMessage: a message
/// without a codec does not compile.
template <class... Tables> struct table_list {
  static_assert(sizeof...(Tables) == std::variant_size_v<variant_type>);
  static_assert(sizeof...(Tables) == static_cast<std::size_t>(wire::ActorMessage::MAX));
  template <std::size_t... I> static constexpr bool in_order(std::index_sequence<I...>) {
    return ((static_cast<std::size_t>(wire::ActorMessageTraits<Tables>::enum_value) == I + 1 &&
             std::is_same_v<decltype(read(std::declval<parcel_reader &>(),
                                          std::declval<const Tables &>())),
                            result<std::variant_alternative_t<I, variant_type>>>)&&...);
  }
  static_assert(in_order(std::index_sequence_for<Tables...>()));
  static constexpr std::array<read_function, sizeof...(Tables)> functions{&read_as<Tables>...};
};

using tables =
    table_list<wire::FrameArrived, wire::EpisodeArrived, wire::EpisodeRejected, wire::GroupSized,
               wire::SourceEnded, wire::PermitWanted, wire::Permit, wire::Hunger,
               wire::GroupComplete, wire::GroupScored, wire::GroupTombstone, wire::GroupsReceived,
               wire::GroupsSettled, wire::PackBin, wire::FetchEpisodes, wire::EpisodesFetched,
               wire::MicroBatchReady, wire::FetchMicroBatch, wire::MicroBatchPacked,
               wire::MicroBatchTaken, wire::StageStep, wire::StepStaged, wire::CommitStep,
               wire::RankNotice, wire::StepTrained, wire::RunFailed, wire::PlannerHello,
               wire::PlannerRefused, wire::RankState, wire::BeginGeneration, wire::EndGeneration,
               wire::StepsRecorded, wire::CheckpointSaved, wire::GroupsWanted, wire::GroupAgain,
               wire::GroupHeld, wire::FinishTraining, wire::ScoreWanted, wire::ScoreTurn,
               wire::PlannerProgress, wire::MessagesSafe>;

} // namespace

std::string_view name_of(const parcel &what) noexcept { return names[what.what.index()]; }

result<decoded_parcel> decode(message parts, const peer_resolver &peers,
                              const std::shared_ptr<memory_meter> &meter) {
  if (parts.empty() || parts.size() > limits::parts + 1)
    return fail(errc::bad_format, "actor message: {} parts", parts.size());
  const auto envelope = parse<wire::ActorEnvelope>(std::move(parts.front()), meter);
  if (!envelope)
    return with_context(envelope.error(), "actor message");
  parts.erase(parts.begin());

  field_reader head("actor message");
  auto to = head.name((*envelope)->to(), "to");
  const auto kind = static_cast<std::size_t>((*envelope)->message_type());
  if (kind == 0 || kind > names.size())
    head.refuse(errc::bad_value, "message", "kind {} is unknown", kind);
  const auto *table = head.required((*envelope)->message(), "message");
  if (table == nullptr)
    return head.failure();
  parcel_reader in(names[kind - 1], std::move(parts), peers, meter);
  auto what = tables::functions[kind - 1](in, table);
  if (!what)
    return tl::unexpected(std::move(what).error());
  return decoded_parcel{std::move(to), {std::move(*what)}};
}

} // namespace millrace
