// SPDX-License-Identifier: Apache-2.0
// What no process of this program sends: from other programs, broken ones, and hostile ones.
#include "transport/hub.hpp"

#include <array>
#include <cstdio>
#include <string>

#include <unistd.h>

#include <boost/test/unit_test.hpp>

#include "runtime/random.hpp"
#include "schema/body.hpp"
#include "tests/support/hubs.hpp"
#include "tests/support/raw_peer.hpp"

using namespace millrace;
using namespace millrace::test;
using namespace std::chrono_literals;

namespace {

/// A process with a good peer, and bad ones.
struct besieged {
  besieged() : link(good.sockets->open(b.target())) {}

  /// The good peer goes on.
  void check_alive() {
    const auto before = b.log.count();
    good.sockets->send(link, lane::data, {some_bytes(100'000, 1)});
    good.sockets->send(link, lane::control, numbered(2));
    BOOST_TEST(b.log.wait_for(before + 2));
    BOOST_TEST(good.sockets->stats().sessions == 2U);
  }
  bool counted(std::uint64_t garbage) {
    return eventually([this, garbage] { return b.sockets->stats().garbage >= garbage; });
  }
  static process_identity bad() {
    return {.run = "run",
            .process = "bad",
            .roles = {},
            .incarnation = 1,
            .program = {},
            .config = "c0ffee"};
  }

  host b{some_options("b", "tcp://127.0.0.1:*")};
  host good{some_options("a", "tcp://127.0.0.1:*")};
  link_id link;
};

std::uint64_t resident_bytes() {
  std::array<unsigned long, 2> pages{};
  std::FILE *file = std::fopen("/proc/self/statm", "r");
  BOOST_REQUIRE(std::fscanf(file, "%lu %lu", &pages[0], &pages[1]) == 2);
  std::fclose(file);
  return pages[1] * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

link_header payload(std::uint64_t session, std::uint64_t number, std::uint64_t id,
                    lane where = lane::control) {
  return {
      .kind = link_kind::payload, .where = where, .session = session, .number = number, .id = id};
}

/// A greeting of ZMTP 3.0 with the NULL mechanism, and its READY command.
std::string greeting() {
  std::string bytes = "\xff" + std::string(8, '\0') + "\x7f\x03" + std::string(1, '\0') + "NULL";
  bytes.resize(64, '\0');
  const std::string ready = "\x05READY\x0bSocket-Type" + std::string("\0\0\0\x06", 4) + "DEALER";
  return bytes + '\x04' + static_cast<char>(ready.size()) + ready;
}

/// The start of a frame that is announced to have `size` bytes.
std::string announced(std::uint64_t size) {
  std::string bytes = "\x02";
  for (int shift = 56; shift >= 0; shift -= 8)
    bytes += static_cast<char>(size >> shift & 0xff);
  return bytes;
}

BOOST_AUTO_TEST_SUITE(hub_and_strangers)

BOOST_AUTO_TEST_CASE(a_hole_ends_the_session) {
  besieged here;
  raw_peer bad(here.b.sockets->endpoint());
  BOOST_REQUIRE(bad.hello(besieged::bad(), lane::control, 5));
  bad.send(payload(5, 1, 1), numbered(1));
  bad.send(payload(5, 3, 3), numbered(3));
  const auto no = bad.receive(link_kind::refusal);
  BOOST_REQUIRE(no);
  BOOST_TEST(no->reason == "a message is missing before number 3, id 3");
  BOOST_TEST(!no->for_good);
  BOOST_TEST(here.b.log.count() == 1U);
  const auto again = bad.hello(besieged::bad(), lane::control, 6);
  BOOST_REQUIRE(again);
  BOOST_TEST(again->control_received == 1U);
  here.check_alive();
}

BOOST_AUTO_TEST_CASE(a_repeat_is_counted_and_dropped) {
  besieged here;
  raw_peer bad(here.b.sockets->endpoint());
  BOOST_REQUIRE(bad.hello(besieged::bad(), lane::control, 5));
  bad.send(payload(5, 1, 1), numbered(1));
  BOOST_REQUIRE(here.b.log.wait_for(1));
  raw_peer later(here.b.sockets->endpoint());
  BOOST_REQUIRE(later.hello(besieged::bad(), lane::control, 6));
  later.send(payload(6, 1, 1), numbered(1));
  later.send(payload(6, 2, 2), numbered(2));
  BOOST_REQUIRE(here.b.log.wait_for(2));
  BOOST_TEST(number_of(here.b.log.arrivals()[1].parts) == 2U);
  BOOST_TEST(here.b.sockets->stats().repeats == 1U);
}

BOOST_AUTO_TEST_CASE(a_message_without_credit_ends_the_session) {
  besieged here;
  raw_peer control(here.b.sockets->endpoint()), data(here.b.sockets->endpoint());
  BOOST_REQUIRE(control.hello(besieged::bad(), lane::control, 5));
  const auto welcome = data.hello(besieged::bad(), lane::data, 6);
  BOOST_REQUIRE(welcome);
  BOOST_TEST(welcome->data_credit == link_limits{}.window_bytes);
  data.send(payload(6, 1, 1, lane::data), {some_bytes(welcome->data_credit + 1, 1)});
  const auto no = data.receive(link_kind::refusal);
  BOOST_REQUIRE(no);
  BOOST_TEST(no->reason == "a message of 33554433 bytes without credit");
  BOOST_TEST(here.b.log.count() == 0U);
}

BOOST_AUTO_TEST_CASE(a_large_control_message_ends_the_session) {
  besieged here;
  raw_peer bad(here.b.sockets->endpoint());
  BOOST_REQUIRE(bad.hello(besieged::bad(), lane::control, 5));
  bad.send(payload(5, 1, 1), {some_bytes(65'537, 1)});
  BOOST_REQUIRE(bad.receive(link_kind::refusal));
  BOOST_TEST(here.b.log.count() == 0U);
  here.check_alive();
}

BOOST_AUTO_TEST_CASE(a_data_session_needs_a_control_session) {
  besieged here;
  raw_peer bad(here.b.sockets->endpoint());
  bad.send(
      {.kind = link_kind::hello, .where = lane::data, .session = 6, .identity = besieged::bad()});
  const auto no = bad.receive(link_kind::refusal);
  BOOST_REQUIRE(no);
  BOOST_TEST(!no->for_good);
}

BOOST_AUTO_TEST_CASE(messages_without_a_session_are_garbage) {
  besieged here;
  raw_peer bad(here.b.sockets->endpoint());
  bad.send(payload(5, 1, 1), numbered(1));
  BOOST_REQUIRE(here.counted(1));
  BOOST_REQUIRE(bad.hello(besieged::bad(), lane::control, 5));
  bad.send(payload(4, 1, 1), numbered(1)); // of another session
  bad.send(payload(5, 1, 1, lane::data), numbered(1));
  bad.send({.kind = link_kind::welcome, .session = 5, .identity = besieged::bad()});
  BOOST_TEST(here.counted(4));
  BOOST_TEST(here.b.log.count() == 0U);
  here.check_alive();
}

BOOST_AUTO_TEST_CASE(who_was_forgotten_is_told) {
  besieged here;
  raw_peer bad(here.b.sockets->endpoint());
  bad.send({.kind = link_kind::heartbeat, .session = 5});
  BOOST_TEST(bad.receive(link_kind::refusal).has_value());
}

BOOST_AUTO_TEST_CASE(another_protocol_version_is_refused_for_good) {
  besieged here;
  raw_peer bad(here.b.sockets->endpoint());
  flatbuffers::FlatBufferBuilder builder;
  const auto root = wire::CreateLinkHeader(builder, 2, wire::LinkKind::Hello);
  bad.send_bytes(finish_body<wire::LinkHeader>(builder, root));
  const auto no = bad.receive(link_kind::refusal);
  BOOST_REQUIRE(no);
  BOOST_TEST(no->for_good);
  BOOST_TEST(no->reason == "link protocol version 2, this process speaks 1");
}

BOOST_AUTO_TEST_CASE(random_bytes_are_counted_and_nobody_else_notices) {
  besieged here;
  here.check_alive();
  raw_peer bad(here.b.sockets->endpoint());
  random_source random(1);
  for (std::uint64_t i = 0; i < 2000; ++i) {
    message parts(random.below(4));
    for (auto &part : parts)
      part = some_bytes(random.below(300), random.next());
    bad.send_bytes(some_bytes(random.below(300), random.next()), parts);
  }
  BOOST_TEST(here.counted(2000));
  here.check_alive();
}

BOOST_AUTO_TEST_CASE(a_message_of_too_many_parts_is_dropped) {
  besieged here;
  raw_peer bad(here.b.sockets->endpoint());
  bad.send(payload(5, 1, 1), message(link_limits{}.parts + 1));
  BOOST_TEST(here.counted(1));
  here.check_alive();
}

BOOST_AUTO_TEST_CASE(a_stream_that_is_not_zeromq_is_counted) {
  besieged here;
  raw_tcp bad(here.b.sockets->endpoint());
  bad.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n" + std::string(1000, 'x'));
  BOOST_TEST(here.counted(1)); // libzmq takes it for an old version of its protocol
  here.check_alive();
}

BOOST_AUTO_TEST_CASE(frames_announced_too_large_close_their_connection_and_cost_no_memory) {
  besieged here;
  here.check_alive();
  const auto before = resident_bytes();
  for (const auto size : {std::uint64_t{1} << 63, std::uint64_t{1} << 31,
                          (std::uint64_t{1} << 31) - 1, std::uint64_t{3'000'000'000}}) {
    raw_tcp bad(here.b.sockets->endpoint());
    bad.send(greeting() + announced(size) + std::string(1000, 'x'));
    BOOST_TEST(bad.closed());
  }
  BOOST_TEST(resident_bytes() < before + (std::uint64_t{16} << 20));
  here.check_alive();
}

BOOST_AUTO_TEST_CASE(a_question_gets_one_answer) {
  besieged here;
  raw_peer tool(here.b.sockets->endpoint());
  tool.send({.kind = link_kind::request, .request = 7}, numbered(70));
  const auto asked = here.b.log.wait_for_questions(1);
  BOOST_REQUIRE(asked.size() == 1U);
  BOOST_TEST(number_of(asked[0].second) == 70U);
  here.b.sockets->answer(asked[0].first, numbered(71));
  here.b.sockets->answer(asked[0].first, numbered(72)); // is ignored
  BOOST_TEST(tool.receive(link_kind::reply)->request == 7U);
  tool.send({.kind = link_kind::request, .request = 8}, numbered(80));
  here.b.sockets->answer(here.b.log.wait_for_questions(2)[1].first, numbered(81));
  BOOST_TEST(tool.receive(link_kind::reply)->request == 8U);
}

BOOST_AUTO_TEST_CASE(an_answer_after_the_asker_left_is_ignored) {
  besieged here;
  {
    raw_peer tool(here.b.sockets->endpoint());
    tool.send({.kind = link_kind::request, .request = 7}, numbered(70));
    BOOST_REQUIRE(here.b.log.wait_for_questions(1).size() == 1U);
  }
  here.b.sockets->answer(here.b.log.wait_for_questions(1)[0].first, numbered(71));
  here.check_alive();
}

BOOST_AUTO_TEST_CASE(an_answer_over_the_limits_is_an_error_for_the_asker) {
  besieged here;
  raw_peer tool(here.b.sockets->endpoint());
  tool.send({.kind = link_kind::request, .request = 7}, numbered(70));
  const auto asked = here.b.log.wait_for_questions(1);
  here.b.sockets->answer(asked[0].first, message(link_limits{}.parts + 1));
  const auto reply = tool.receive(link_kind::reply);
  BOOST_REQUIRE(reply);
  BOOST_TEST(reply->reason == "the answer of 0 bytes in 65537 parts is too long");
}

BOOST_AUTO_TEST_CASE(what_is_not_answered_before_the_end_is_answered_then) {
  besieged here;
  raw_peer tool(here.b.sockets->endpoint());
  tool.send({.kind = link_kind::request, .request = 7}, numbered(70));
  BOOST_REQUIRE(here.b.log.wait_for_questions(1).size() == 1U);
  here.b.sockets->stop(0ms);
  const auto reply = tool.receive(link_kind::reply);
  BOOST_REQUIRE(reply);
  BOOST_TEST(reply->reason == "the process ends");
}

BOOST_AUTO_TEST_CASE(a_question_about_another_run_is_not_asked) {
  besieged here;
  raw_peer tool(here.b.sockets->endpoint());
  auto who = besieged::bad();
  who.run = "other";
  tool.send({.kind = link_kind::request, .identity = who, .request = 7}, numbered(70));
  BOOST_TEST(tool.receive(link_kind::reply)->reason ==
             "this is run 'run', it was asked about run 'other'");
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
