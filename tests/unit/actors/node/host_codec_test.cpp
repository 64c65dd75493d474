// SPDX-License-Identifier: Apache-2.0
#include "actors/node/host_codec.hpp"

#include <cstring>
#include <map>
#include <random>
#include <string>

#include "actors/node/codec.hpp"
#include "schema/body.hpp"
#include "schema/limits.hpp"
#include "tests/support/random_host_parcels.hpp"

#include <boost/test/unit_test.hpp>

namespace millrace {
namespace {

using test::host_parcel_kinds;
using test::same;

// A kind that is added to host_parcel needs a table here, and a place in both halves of the codec.
static_assert(host_parcel_kinds == static_cast<std::size_t>(wire::HostMessage::MAX));

/// Calls `check` with messages of every kind.
template <class F> void for_every_kind(int each, F &&check) {
  const std::uint64_t seed = std::random_device{}();
  test::host_parcel_maker maker(seed);
  for (std::size_t kind = 0; kind < host_parcel_kinds; ++kind)
    for (int i = 0; i < each; ++i) {
      const auto what = maker.make(kind);
      BOOST_TEST_CONTEXT("seed " << seed << ", kind " << kind << ", message " << i) { check(what); }
    }
}

std::string problem_with(const host_parcel &what) {
  const auto got = decode_host(encode(what));
  return got ? "" : got.error().message;
}

process_alive some_process() {
  process_alive out;
  out.entry.process = "scorer-1";
  out.entry.actors = {{role::scorer, "scorer-1"}};
  out.status.counters = {{"tokens", 1}};
  out.status.waits = {{"scorer-1", "a group", "assembler", 5}};
  return out;
}

BOOST_AUTO_TEST_SUITE(host_codec_suite)

BOOST_AUTO_TEST_CASE(every_host_message_comes_back_as_it_was) {
  for_every_kind(50, [](const host_parcel &what) {
    const auto got = decode_host(encode(what));
    BOOST_REQUIRE_MESSAGE(got, got.error().message);
    BOOST_TEST(same(*got, what));
  });
}

BOOST_AUTO_TEST_CASE(a_misaligned_host_message_is_read_too) {
  for_every_kind(5, [](const host_parcel &what) {
    const auto body = encode(what).front();
    buffer memory(body.size() + 3);
    std::memcpy(memory.data() + 3, body.data(), body.size());
    const auto got = decode_host({std::move(memory).freeze(3, body.size())});
    BOOST_REQUIRE_MESSAGE(got, got.error().message);
    BOOST_TEST(same(*got, what));
  });
}

BOOST_AUTO_TEST_CASE(a_host_message_cut_off_or_changed_never_reads_outside_itself) {
  for_every_kind(2, [](const host_parcel &what) {
    const auto whole = encode(what).front();
    for (std::size_t size = 0; size < whole.size(); ++size)
      static_cast<void>(decode_host({frame::copy_of(whole.bytes().first(size))}));
    std::vector<std::byte> bytes(whole.bytes().begin(), whole.bytes().end());
    for (auto &byte : bytes)
      for (const unsigned flip : {0x01U, 0x80U, 0xFFU}) {
        byte ^= static_cast<std::byte>(flip);
        if (const auto got = decode_host({frame::copy_of(bytes)}))
          static_cast<void>(encode(*got));
        byte ^= static_cast<std::byte>(flip);
      }
  });
}

BOOST_AUTO_TEST_CASE(only_host_messages_claim_to_be_host_messages) {
  for_every_kind(1, [](const host_parcel &what) { BOOST_TEST(is_host_message(encode(what))); });
  BOOST_TEST(!is_host_message(encode(parcel{permit{1}}, "a").parts));
  BOOST_TEST(!is_host_message({}));
  BOOST_TEST(!is_host_message({frame()}));
  BOOST_TEST(!is_host_message({frame::copy_of(std::vector<std::byte>(7))}));
}

BOOST_AUTO_TEST_CASE(a_host_message_is_one_part) {
  const auto part = encode({drain_process{}}).front();
  BOOST_TEST(decode_host({part}).has_value());
  BOOST_TEST(!decode_host({}));
  BOOST_TEST(!decode_host({part, part}));
}

BOOST_AUTO_TEST_CASE(missing_names_are_refused_by_field) {
  auto nameless = some_process();
  nameless.entry.process.clear();
  BOOST_TEST(problem_with({nameless}) == "process_alive: entry.process: it is missing");
  auto nameless_actor = some_process();
  nameless_actor.entry.actors[0].name.clear();
  BOOST_TEST(problem_with({nameless_actor}) == "process_alive: entry.actors.name: it is missing");
  BOOST_TEST(problem_with({process_leaves{}}) == "process_leaves: process: it is missing");
  BOOST_TEST(problem_with({process_report{}}) == "process_report: process: it is missing");
  BOOST_TEST(problem_with({drain_question{}}) == "drain_question: name: it is missing");
}

BOOST_AUTO_TEST_CASE(unknown_roles_and_states_are_refused_by_field) {
  auto strange = some_process();
  strange.entry.actors[0].what = static_cast<role>(8);
  BOOST_TEST(problem_with({strange}) == "process_alive: entry.actors.role: 8 is unknown");
  strange = some_process();
  strange.entry.state = static_cast<process_state>(4);
  BOOST_TEST(problem_with({strange}) == "process_alive: entry.state: 4 is unknown");
}

BOOST_AUTO_TEST_CASE(long_names_are_refused_and_long_prose_is_cut) {
  auto long_name = some_process();
  long_name.status.waits[0].who.assign(limits::name_bytes + 1, 'w');
  BOOST_TEST(problem_with({long_name}) ==
             "process_alive: status.waits.who: 4097 bytes, at most 4096 are allowed");
  const auto got = decode_host(encode({end_run{std::string(limits::text_bytes + 1, 'f')}}));
  BOOST_REQUIRE(got);
  BOOST_TEST(std::get<end_run>(got->what).failure.size() == limits::text_bytes);
}

BOOST_AUTO_TEST_CASE(long_lists_are_refused_by_field) {
  auto many = some_process();
  many.status.counters.resize(limits::host_entries + 1);
  BOOST_TEST(problem_with({many}) ==
             "process_alive: status.counters: 65537 entries, at most 65536 are allowed");
}

BOOST_AUTO_TEST_CASE(a_text_that_many_share_is_refused_before_it_is_copied) {
  flatbuffers::FlatBufferBuilder builder;
  const auto what = builder.CreateString(std::string(limits::text_bytes, 'w'));
  std::vector<flatbuffers::Offset<wire::WaitEntry>> waits;
  for (int i = 0; i < 1000; ++i)
    waits.push_back(wire::CreateWaitEntry(builder, 0, what));
  const auto list = builder.CreateVector(waits);
  wire::ProcessStatusBuilder status(builder);
  status.add_waits(list);
  const auto alive = wire::CreateProcessAlive(builder, 0, status.Finish());
  const auto root =
      wire::CreateHostEnvelope(builder, wire::HostMessage::ProcessAlive, alive.Union());
  const auto got = decode_host({finish_body<wire::HostEnvelope>(builder, root)});
  BOOST_REQUIRE(!got);
  BOOST_TEST(got.error().message.find("vectors overlap") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(only_a_report_may_be_large) {
  const process_report report{"reader-0", std::string(limits::host_bytes + 1, ' ')};
  BOOST_TEST(problem_with({report}).empty());
  flatbuffers::FlatBufferBuilder builder;
  const auto failure = builder.CreateString(report.json);
  const auto end = wire::CreateEndRun(builder, failure);
  const auto root = wire::CreateHostEnvelope(builder, wire::HostMessage::EndRun, end.Union());
  const auto got = decode_host({finish_body<wire::HostEnvelope>(builder, root)});
  BOOST_REQUIRE(!got);
  BOOST_TEST((got.error().code == errc::too_large));
}

BOOST_AUTO_TEST_CASE(a_message_without_its_table_or_kind_is_refused) {
  flatbuffers::FlatBufferBuilder builder;
  const auto nothing = wire::CreateHostEnvelope(builder);
  BOOST_TEST(!decode_host({finish_body<wire::HostEnvelope>(builder, nothing)}));
  const auto missing = wire::CreateHostEnvelope(builder, wire::HostMessage::ProcessAlive);
  BOOST_TEST(!decode_host({finish_body<wire::HostEnvelope>(builder, missing)}));
  const auto empty = wire::CreateHostEnvelope(builder, wire::HostMessage::ProcessAlive,
                                              wire::CreateProcessAlive(builder).Union());
  const auto got = decode_host({finish_body<wire::HostEnvelope>(builder, empty)});
  BOOST_REQUIRE(!got);
  BOOST_TEST(got.error().message == "process_alive: entry: it is missing");
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
} // namespace millrace
