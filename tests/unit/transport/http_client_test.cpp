// SPDX-License-Identifier: Apache-2.0
#include "transport/http_client.hpp"

#include <string>
#include <thread>

#include <boost/test/unit_test.hpp>

#include "tests/support/stand_in_server.hpp"

using namespace millrace;
using test::scripted_reply;
using test::seen_request;
using after = scripted_reply::after;

namespace {

constexpr std::chrono::milliseconds soon{100};
constexpr std::chrono::milliseconds late{60'000};

/// The answer's body, or the error's kind and message.
std::string post(const std::string &url, std::chrono::milliseconds timeout = late,
                 const std::string &body = "{}", const stop_signal &stop = stop_signal()) {
  std::string out;
  const http_receiver to{.head = {}, .body = [&](std::string_view piece) -> status {
                           out += piece;
                           return {};
                         }};
  const auto posted = http_post({.server = http_url::parse(url).value(),
                                 .path = "/p",
                                 .id = "i",
                                 .body = body,
                                 .connect_timeout = timeout,
                                 .timeout = timeout,
                                 .most_body = 1000},
                                to, stop);
  return posted ? out
                : fmt::format("{}: {}", to_string(posted.error().code), posted.error().message);
}

} // namespace

BOOST_AUTO_TEST_SUITE(http_clients)

BOOST_AUTO_TEST_CASE(a_request_arrives_as_it_was_made_and_the_answer_comes_back) {
  const std::string body(3 << 20, 'b'); // more than sockets buffer
  std::string path;
  std::string id;
  bool whole = false;
  test::stand_in_server server([&](const seen_request &request) -> scripted_reply {
    path = request.path;
    id = request.id;
    whole = request.body == body;
    return {test::http_ok("hello")};
  });
  BOOST_TEST(post(server.url() + "/prefix", late, body) == "hello");
  BOOST_TEST(path == "/prefix/p");
  BOOST_TEST(id == "i");
  BOOST_TEST(whole);
}

BOOST_AUTO_TEST_CASE(an_answer_ends_with_its_last_byte_though_the_connection_stays) {
  test::stand_in_server server([](const seen_request &) -> scripted_reply {
    return {test::http_ok("x"), after::hold};
  });
  BOOST_TEST(post(server.url()) == "x");
}

BOOST_AUTO_TEST_CASE(nobody_there_is_a_lost_peer) {
  BOOST_TEST(post(test::url_of_nobody()).find("peer_lost: connect: ") == 0);
}

BOOST_AUTO_TEST_CASE(a_name_without_an_address_is_a_lost_peer) {
  BOOST_TEST(post("http://no-such-host.invalid:1").find("peer_lost: host 'no-such-host.invalid'") ==
             0);
}

BOOST_AUTO_TEST_CASE(a_server_that_says_nothing_is_left_in_time) {
  test::stand_in_server server([](const seen_request &) -> scripted_reply {
    return {"", after::hold};
  });
  BOOST_TEST(post(server.url(), soon) == "timed_out: no whole answer within 100 ms");
}

BOOST_AUTO_TEST_CASE(a_byte_now_and_then_does_not_stop_the_clock) {
  test::stand_in_server server([](const seen_request &) -> scripted_reply {
    return {"HTTP/1.1 200 OK\r\n\r\n", after::drip};
  });
  BOOST_TEST(post(server.url(), soon) == "timed_out: no whole answer within 100 ms");
}

BOOST_AUTO_TEST_CASE(a_status_line_without_an_end_is_refused) {
  test::stand_in_server server([](const seen_request &) -> scripted_reply {
    return {"HTTP/1.1 200 " + std::string(1 << 20, 'a'), after::flood};
  });
  BOOST_TEST(post(server.url()) == "too_large: the head of the answer has more than 32768 bytes");
}

BOOST_AUTO_TEST_CASE(a_body_without_an_end_is_refused_at_its_bound) {
  test::stand_in_server server([](const seen_request &request) -> scripted_reply {
    return {"HTTP/1.1 200 OK\r\n\r\n" + request.path, after::flood};
  });
  BOOST_TEST(post(server.url()) ==
             "too_large: the answer has more than the 1000 bytes that are expected");
}

BOOST_AUTO_TEST_CASE(an_answer_that_ends_early_is_a_lost_peer) {
  test::stand_in_server server([](const seen_request &) -> scripted_reply {
    return {"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"};
  });
  BOOST_TEST(post(server.url()) == "peer_lost: the connection ended after 4 bytes of the answer");
}

BOOST_AUTO_TEST_CASE(an_error_of_the_receiver_ends_the_answer) {
  test::stand_in_server server([](const seen_request &) -> scripted_reply {
    return {test::http_ok("x"), after::hold};
  });
  const http_receiver to{
      .head = [](const http_head &) -> status { return fail(errc::bad_value, "no thanks"); },
      .body = {}};
  const stop_signal stop;
  const auto posted = http_post({.server = http_url::parse(server.url()).value(),
                                 .path = "/",
                                 .id = "i",
                                 .body = "{}",
                                 .connect_timeout = late,
                                 .timeout = late,
                                 .most_body = 1000},
                                to, stop);
  BOOST_TEST(posted.error().message == "no thanks");
}

BOOST_AUTO_TEST_CASE(a_stop_interrupts_who_waits) {
  stop_signal stop;
  test::stand_in_server server([&](const seen_request &) -> scripted_reply {
    stop.set(); // the client has sent its request, and waits
    return {"", after::hold};
  });
  BOOST_TEST(post(server.url(), late, "{}", stop) == "conflict: stopped");
  BOOST_TEST(post(server.url(), late, "{}", stop) == "conflict: stopped");
}

BOOST_AUTO_TEST_SUITE_END()
