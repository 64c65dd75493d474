// SPDX-License-Identifier: Apache-2.0
#include "actors/node/codec.hpp"

#include <cstring>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "schema/limits.hpp"
#include "tests/support/actors.hpp"
#include "tests/support/episodes.hpp"
#include "tests/support/random_parcels.hpp"

#include <boost/test/unit_test.hpp>

namespace millrace {
namespace {

using test::frames_of;
using test::parcel_kinds;
using test::parcel_maker;
using test::text_of;

// A kind that is added to parcel needs a table here, and a place in both halves of the codec.
static_assert(parcel_kinds == static_cast<std::size_t>(wire::ActorMessage::MAX));

std::uint64_t random_seed() { return std::random_device{}(); }

result<decoded_parcel> decoded(message parts, const std::shared_ptr<memory_meter> &meter = {}) {
  return decode(std::move(parts), test::some_peer, meter);
}

/// Calls `check` with messages of every kind.
template <class F> void for_every_kind(int each, F &&check) {
  const auto seed = random_seed();
  parcel_maker maker(seed);
  for (std::size_t kind = 0; kind < parcel_kinds; ++kind)
    for (int i = 0; i < each; ++i) {
      const auto what = maker.make(kind);
      BOOST_TEST_CONTEXT("seed " << seed << ", " << name_of(what) << " " << i) { check(what); }
    }
}

frame moved_by(const frame &from, std::size_t shift) {
  buffer memory(from.size() + shift);
  if (!from.empty())
    std::memcpy(memory.data() + shift, from.data(), from.size());
  return std::move(memory).freeze(shift, from.size());
}

/// The parts of a message as bytes.
std::vector<std::string> bytes_of(const message &parts) {
  std::vector<std::string> out;
  for (const auto &part : parts)
    out.emplace_back(reinterpret_cast<const char *>(part.data()), part.size());
  return out;
}

/// Reads whatever decode() let in, and sends it on.
void use(message parts) {
  if (const auto got = decoded(std::move(parts))) {
    static_cast<void>(text_of(got->what));
    static_cast<void>(encode(got->what, got->to));
  }
}

std::string problem_with(message parts) {
  const auto got = decoded(std::move(parts));
  return got ? "" : got.error().message;
}

bool mentions(const std::string &text, std::string_view what) {
  return text.find(what) != std::string::npos;
}

BOOST_AUTO_TEST_SUITE(codec_suite)

BOOST_AUTO_TEST_CASE(every_message_comes_back_with_its_frames_where_they_were) {
  for_every_kind(50, [](const parcel &what) {
    const auto meter = std::make_shared<memory_meter>();
    auto parts = encode(what, "scorer-1").parts;
    parts[0] = frame::copy_of(parts[0].bytes()); // aligned, as a large part off the wire is
    const auto got = decoded(std::move(parts), meter);
    BOOST_REQUIRE_MESSAGE(got, got.error().message);
    BOOST_TEST(got->to == "scorer-1");
    BOOST_TEST(got->what.what.index() == what.what.index());
    BOOST_TEST(text_of(got->what) == text_of(what));
    BOOST_TEST(meter->held_peak == 0U); // nothing was copied
  });
}

BOOST_AUTO_TEST_CASE(the_parts_after_the_envelope_are_the_frames_of_the_message) {
  for_every_kind(10, [](const parcel &what) {
    const auto parts = encode(what, "a").parts;
    const auto frames = frames_of(what);
    BOOST_REQUIRE(parts.size() == frames.size() + 1);
    for (std::size_t i = 0; i < frames.size(); ++i)
      BOOST_TEST(parts[i + 1].data() == frames[i].data());
  });
}

BOOST_AUTO_TEST_CASE(misaligned_parts_are_read_too) {
  for_every_kind(5, [](const parcel &what) {
    const auto sent = encode(what, "a").parts;
    message parts;
    for (const auto &part : sent)
      parts.push_back(moved_by(part, 4));
    const auto got = decoded(std::move(parts));
    BOOST_REQUIRE_MESSAGE(got, got.error().message);
    BOOST_TEST(bytes_of(encode(got->what, got->to).parts) == bytes_of(sent));
  });
}

BOOST_AUTO_TEST_CASE(a_message_cut_off_anywhere_never_reads_outside_itself) {
  for_every_kind(1, [](const parcel &what) {
    const auto whole = encode(what, "a").parts;
    for (std::size_t i = 0; i < whole.size(); ++i)
      for (std::size_t size = 0; size < std::min<std::size_t>(whole[i].size(), 2000); ++size) {
        auto parts = whole;
        parts[i] = frame::copy_of(whole[i].bytes().first(size));
        use(std::move(parts));
      }
  });
}

BOOST_AUTO_TEST_CASE(a_message_with_a_changed_byte_never_reads_outside_itself) {
  for_every_kind(1, [](const parcel &what) {
    const auto whole = encode(what, "a").parts;
    for (std::size_t i = 0; i < whole.size(); ++i)
      for (std::size_t at = 0; at < std::min<std::size_t>(whole[i].size(), 2000); ++at)
        for (const unsigned flip : {0x01U, 0x80U, 0xFFU}) {
          std::vector<std::byte> bytes(whole[i].bytes().begin(), whole[i].bytes().end());
          bytes[at] ^= static_cast<std::byte>(flip);
          auto parts = whole;
          parts[i] = frame::copy_of(bytes);
          use(std::move(parts));
        }
  });
}

BOOST_AUTO_TEST_CASE(a_missing_part_is_refused_by_the_name_of_the_message) {
  for_every_kind(10, [](const parcel &what) {
    const auto whole = encode(what, "a").parts;
    for (std::size_t i = 1; i < whole.size(); ++i) {
      auto parts = whole;
      parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(i));
      if (std::holds_alternative<micro_batch_packed>(what.what) && i > 1)
        continue; // the feeder, which reads the micro batch, finds that
      const auto problem = problem_with(std::move(parts));
      BOOST_TEST(mentions(problem, name_of(what)), problem);
    }
  });
}

BOOST_AUTO_TEST_CASE(a_part_too_many_is_refused_by_the_name_of_the_message) {
  for_every_kind(3, [](const parcel &what) {
    if (std::holds_alternative<frame_arrived>(what.what) ||
        std::holds_alternative<episode_arrived>(what.what) ||
        std::holds_alternative<micro_batch_packed>(what.what))
      return; // all parts are those of one body, which says which it uses
    auto parts = encode(what, "a").parts;
    parts.push_back(frame::copy_of(std::vector<std::byte>(8)));
    const auto problem = problem_with(std::move(parts));
    BOOST_TEST(mentions(problem, std::string(name_of(what)) + ": parts: "), problem);
  });
}

/// Where each kind goes. Source: the comments in actors/interfaces.hpp.
struct way {
  lane where;
  bool asked_for;
};
const std::map<std::string_view, way> ways{{"frame_arrived", {lane::data, false}},
                                           {"episode_arrived", {lane::data, false}},
                                           {"episode_rejected", {lane::data, false}},
                                           {"group_sized", {lane::data, false}},
                                           {"source_ended", {lane::data, false}},
                                           {"permit_wanted", {lane::control, false}},
                                           {"permit", {lane::control, false}},
                                           {"hunger", {lane::control, false}},
                                           {"group_complete", {lane::data, false}},
                                           {"group_scored", {lane::data, false}},
                                           {"group_tombstone", {lane::data, false}},
                                           {"groups_received", {lane::control, false}},
                                           {"groups_settled", {lane::control, false}},
                                           {"pack_bin", {lane::data, false}},
                                           {"fetch_episodes", {lane::control, false}},
                                           {"episodes_fetched", {lane::data, true}},
                                           {"micro_batch_ready", {lane::control, false}},
                                           {"fetch_micro_batch", {lane::control, false}},
                                           {"micro_batch_packed", {lane::data, true}},
                                           {"micro_batch_taken", {lane::control, false}},
                                           {"stage_step", {lane::control, false}},
                                           {"step_staged", {lane::control, false}},
                                           {"commit_step", {lane::control, false}},
                                           {"rank_notice", {lane::control, false}},
                                           {"step_trained", {lane::control, false}},
                                           {"run_failed", {lane::control, false}},
                                           {"planner_hello", {lane::control, false}},
                                           {"planner_refused", {lane::control, false}},
                                           {"rank_state", {lane::control, false}},
                                           {"begin_generation", {lane::control, false}},
                                           {"end_generation", {lane::control, false}},
                                           {"steps_recorded", {lane::control, false}},
                                           {"checkpoint_saved", {lane::control, false}},
                                           {"groups_wanted", {lane::control, false}},
                                           {"group_again", {lane::data, false}},
                                           {"group_held", {lane::control, false}},
                                           {"finish_training", {lane::control, false}},
                                           {"score_wanted", {lane::data, false}},
                                           {"score_turn", {lane::data, true}},
                                           {"planner_progress", {lane::control, false}},
                                           {"messages_safe", {lane::control, false}}};

BOOST_AUTO_TEST_CASE(every_kind_goes_its_way) {
  BOOST_TEST(ways.size() == parcel_kinds);
  for_every_kind(3, [](const parcel &what) {
    const auto out = encode(what, "a");
    const auto &expected = ways.at(name_of(what));
    BOOST_TEST((out.where == expected.where));
    BOOST_TEST(out.asked_for == expected.asked_for);
  });
}

BOOST_AUTO_TEST_CASE(the_largest_settlement_is_a_control_message) {
  groups_settled in;
  in.groups.resize(groups_settled::most_refs);
  BOOST_TEST((encode({in}, std::string(200, 'a')).where == lane::control));
}

BOOST_AUTO_TEST_CASE(the_longest_list_of_safe_messages_is_a_control_message) {
  messages_safe in;
  in.messages.resize(messages_safe::most_messages);
  in.assembler = test::some_peer({std::string(200, 'a'), 1});
  BOOST_TEST((encode({in}, std::string(200, 'a')).where == lane::control));
}

BOOST_AUTO_TEST_CASE(a_control_message_that_is_too_large_goes_with_the_data) {
  groups_received in;
  in.groups.resize(link_limits{}.control_bytes / sizeof(group_ref));
  const auto out = encode({in}, "a");
  BOOST_TEST(out.parts.front().size() > link_limits{}.control_bytes);
  BOOST_TEST((out.where == lane::data));
}

BOOST_AUTO_TEST_CASE(a_local_actor_goes_under_its_id) {
  test::actor_world world;
  test::probe<permit> packer(world);
  const auto out = encode({micro_batch_ready{{}, 1, peer({"packer-3", 9}, packer.actor())}}, "a");
  const auto got = decoded(out.parts);
  BOOST_REQUIRE(got);
  BOOST_TEST((std::get<micro_batch_ready>(got->what.what).packer.id() == peer_id{"packer-3", 9}));
}

BOOST_AUTO_TEST_CASE(an_actor_that_nobody_knows_is_refused_by_field) {
  const auto parts = encode({fetch_micro_batch{{}, test::some_peer({"trainer-1", 2})}}, "a").parts;
  const auto got = decode(parts, [](const peer_id &) { return peer(); });
  BOOST_REQUIRE(!got);
  BOOST_TEST((got.error().code == errc::not_found));
  BOOST_TEST(got.error().message ==
             "fetch_micro_batch: feeder: no actor 'trainer-1' is known here");
}

/// The envelope of a message none of whose fields is there.
message empty_message(std::size_t kind, std::size_t parts) {
  flatbuffers::FlatBufferBuilder builder;
  const auto to = builder.CreateString("a");
  const auto table = builder.EndTable(builder.StartTable());
  const auto root = wire::CreateActorEnvelope(
      builder, to, static_cast<wire::ActorMessage>(kind + 1), flatbuffers::Offset<void>(table));
  message out{finish_body<wire::ActorEnvelope>(builder, root)};
  out.resize(1 + parts);
  return out;
}

BOOST_AUTO_TEST_CASE(a_missing_field_is_refused_by_name) {
  const std::map<std::string_view, std::pair<std::size_t, std::string_view>> expected{
      {"frame_arrived", {1, "group"}},     {"episode_arrived", {2, "group"}},
      {"episode_rejected", {0, "group"}},  {"group_sized", {0, "group"}},
      {"group_complete", {1, "group"}},    {"group_scored", {2, "group"}},
      {"group_tombstone", {1, "group"}},   {"pack_bin", {1, "plan"}},
      {"fetch_episodes", {0, "group"}},    {"episodes_fetched", {0, "group"}},
      {"micro_batch_ready", {0, "bin"}},   {"fetch_micro_batch", {0, "bin"}},
      {"micro_batch_packed", {1, "bin"}},  {"micro_batch_taken", {0, "bin"}},
      {"commit_step", {0, "step_digest"}}, {"run_failed", {0, "code"}},
      {"planner_hello", {0, "claim"}},     {"planner_refused", {0, "claim"}},
      {"group_again", {0, "group"}},       {"group_held", {0, "group"}},
      {"groups_settled", {0, "when"}},     {"groups_wanted", {0, "when"}},
      {"score_wanted", {1, "group"}},      {"score_turn", {0, "group"}},
      {"messages_safe", {0, "assembler"}}, {"stage_step", {0, "claim"}},
      {"begin_generation", {0, "claim"}},  {"end_generation", {0, "claim"}},
      {"steps_recorded", {0, "claim"}},    {"finish_training", {0, "claim"}}};
  for_every_kind(1, [&](const parcel &what) {
    const auto found = expected.find(name_of(what));
    if (found == expected.end()) { // zero is a value of all its fields
      BOOST_TEST(decoded(empty_message(what.what.index(), 0)).has_value());
      return;
    }
    const auto &[parts, field] = found->second;
    const auto problem = problem_with(empty_message(what.what.index(), parts));
    BOOST_TEST(mentions(problem, fmt::format("{}: {}: ", name_of(what), field)), problem);
  });
}

BOOST_AUTO_TEST_CASE(an_unknown_kind_is_refused) {
  BOOST_TEST(problem_with(empty_message(200, 0)) == "actor message: message: kind 201 is unknown");
}

BOOST_AUTO_TEST_CASE(a_message_to_nobody_is_refused) {
  BOOST_TEST(problem_with(encode({permit{1}}, "").parts) == "actor message: to: it is missing");
}

BOOST_AUTO_TEST_CASE(no_parts_and_another_body_are_no_message) {
  BOOST_TEST(!decoded({}));
  BOOST_TEST(!decoded(test::sealed({test::some_episode()}).parts()));
}

BOOST_AUTO_TEST_CASE(a_name_that_is_too_long_is_refused_by_field) {
  const std::string longest(limits::name_bytes, 'n');
  BOOST_TEST(decoded(encode({rank_notice{longest, ""}}, longest).parts).has_value());
  BOOST_TEST(mentions(problem_with(encode({rank_notice{longest + "n", ""}}, "a").parts),
                      "rank_notice: key: 4097 bytes"));
  const fetch_micro_batch in{{}, test::some_peer({longest + "n", 0})};
  BOOST_TEST(mentions(problem_with(encode({in}, "a").parts), "fetch_micro_batch: feeder: "));
}

BOOST_AUTO_TEST_CASE(numbers_and_lists_that_are_too_large_are_refused_by_field) {
  constexpr auto most = static_cast<std::uint32_t>(limits::list_entries);
  groups_received many;
  many.groups.resize(most + 1);
  BOOST_TEST(mentions(problem_with(encode({many}, "a").parts), "groups_received: groups: "));
  BOOST_TEST(mentions(problem_with(encode({stage_step{1, most + 1}}, "a").parts),
                      "stage_step: micro_batches: "));
  const rank_notice notice{"k", std::string(limits::notice_bytes + 1, 'v')};
  BOOST_TEST(mentions(problem_with(encode({notice}, "a").parts), "rank_notice: value: "));
  const auto info = std::make_shared<group_info>(group_info{{}, "s", 8});
  const episode_rejected far{{}, info, most, "e", 0, ""};
  BOOST_TEST(mentions(problem_with(encode({far}, "a").parts), "episode_rejected: member: "));
}

BOOST_AUTO_TEST_CASE(unknown_enumerators_are_refused_by_field) {
  group_tombstone tombstone =
      std::get<group_tombstone>(parcel_maker(1).make(parcel{group_tombstone{}}.what.index()).what);
  tombstone.reason = static_cast<tombstone_reason>(5);
  BOOST_TEST(problem_with(encode({tombstone}, "a").parts) ==
             "group_tombstone: reason: 5 is unknown");
  for (const auto code : {0U, 15U, 65'535U}) {
    const run_failed failed{"a", {static_cast<errc>(code), ""}};
    BOOST_TEST(mentions(problem_with(encode({failed}, "a").parts), "run_failed: code: "));
  }
}

BOOST_AUTO_TEST_CASE(a_bin_has_the_groups_of_its_plan) {
  flatbuffers::FlatBufferBuilder builder;
  pack_bin in;
  in.plan = finish_body<wire::BinPlan>(builder, wire::CreateBinPlan(builder));
  in.feeder = test::some_peer({"trainer-0", 0});
  BOOST_TEST(decoded(encode({in}, "a").parts).has_value());
  const auto scored =
      std::get<group_scored>(parcel_maker(1).make(parcel{group_scored{}}.what.index()).what);
  in.groups.push_back({{}, scored.annotations, in.feeder});
  BOOST_TEST(problem_with(encode({in}, "a").parts) == "pack_bin: groups: 1 for a plan of 0");
}

BOOST_AUTO_TEST_CASE(counts_of_parts_that_do_not_add_up_are_refused) {
  episodes_fetched in{1, {}, {test::sealed({test::some_episode()})}, ""};
  auto parts = encode({in}, "a").parts;
  const auto part_count = static_cast<std::uint32_t>(in.episodes[0].parts().size());
  // 2 ^ 32 more than there are, in two episodes: the sum must not wrap around
  for (const auto &counts :
       {std::vector<std::uint32_t>{part_count - 1}, std::vector<std::uint32_t>{part_count, 1},
        std::vector<std::uint32_t>{UINT32_MAX, part_count + 1}}) {
    flatbuffers::FlatBufferBuilder builder;
    const auto to = builder.CreateString("a");
    const wire::GroupPlace group(0, 0);
    const auto list = builder.CreateVector(counts);
    const auto table = wire::CreateEpisodesFetched(builder, 1, &group, list);
    const auto root =
        wire::CreateActorEnvelope(builder, to, wire::ActorMessage::EpisodesFetched, table.Union());
    parts[0] = finish_body<wire::ActorEnvelope>(builder, root);
    BOOST_TEST(mentions(problem_with(parts), "episodes_fetched: parts: "));
  }
}

/// A small envelope that would become `copies` long names.
message shared_name(std::size_t copies) {
  flatbuffers::FlatBufferBuilder builder;
  const auto to = builder.CreateString("a");
  const auto name = builder.CreateString(std::string(limits::name_bytes, 'n'));
  const auto assembler = wire::CreatePeerId(builder, name);
  const wire::GroupPlace place(0, 0);
  std::vector<flatbuffers::Offset<wire::BinGroup>> groups;
  for (std::size_t i = 0; i < copies; ++i)
    groups.push_back(wire::CreateBinGroup(builder, &place, assembler));
  const auto list = builder.CreateVector(groups);
  const auto table = wire::CreatePackBin(builder, list, assembler);
  const auto root =
      wire::CreateActorEnvelope(builder, to, wire::ActorMessage::PackBin, table.Union());
  return {finish_body<wire::ActorEnvelope>(builder, root)};
}

BOOST_AUTO_TEST_CASE(a_name_that_many_share_is_refused_before_it_is_copied) {
  BOOST_TEST(mentions(problem_with(shared_name(1000)), "vectors overlap"));
  BOOST_TEST(mentions(problem_with(shared_name(0)), "pack_bin: parts: "));
}

BOOST_AUTO_TEST_CASE(a_long_reason_is_cut_between_characters) {
  std::string reason(limits::text_bytes - 1, 'r');
  reason += "\xC3\xA9 and more";
  const run_failed in{"a", {errc::io, reason}};
  const auto got = decoded(encode({in}, "a").parts);
  BOOST_REQUIRE(got);
  BOOST_TEST(std::get<run_failed>(got->what.what).what.message ==
             reason.substr(0, limits::text_bytes - 1));
}

/// An episode of more than half the parts that a message may have.
sealed_episode episode_of_many_parts() {
  auto data = test::some_episode();
  const auto pixels = test::bytes_of(std::vector<float>{1, 2});
  for (std::size_t i = 0; i <= limits::parts / 2; ++i)
    data.nodes[0].tensors.push_back({std::to_string(i), dtype::float32, {1, 2}, pixels});
  return test::sealed({data});
}

BOOST_AUTO_TEST_CASE(episodes_of_too_many_parts_are_answered_by_a_problem) {
  const auto episode = episode_of_many_parts();
  BOOST_TEST(episode.parts().size() > limits::parts / 2);
  const auto got = decoded(encode({episodes_fetched{7, {}, {episode, episode}, ""}}, "a").parts);
  BOOST_REQUIRE(got);
  const auto &answer = std::get<episodes_fetched>(got->what.what);
  BOOST_TEST(answer.job == 7U);
  BOOST_TEST(answer.episodes.empty());
  BOOST_TEST(mentions(answer.problem, "too many for one message"));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
} // namespace millrace
