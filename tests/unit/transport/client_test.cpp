// SPDX-License-Identifier: Apache-2.0
#include "transport/client.hpp"

#include <future>
#include <thread>

#include <boost/test/unit_test.hpp>

#include "tests/support/hubs.hpp"
#include "transport/link_header.hpp"

#include <zmq.hpp>

using namespace millrace;
using namespace millrace::test;
using namespace std::chrono_literals;

namespace {

/// A question that is asked on a thread of its own.
std::future<result<message>> asked(const host &whom, message question,
                                   const std::string &run = "run",
                                   std::chrono::milliseconds deadline = long_enough) {
  return std::async(std::launch::async, [=, to = whom.target(), curve = whom.options.curve] {
    return ask(to.endpoint, to.key, curve, run, question, deadline);
  });
}

result<message> asked_at(const std::string &endpoint, std::chrono::milliseconds deadline) {
  return ask(endpoint, "", std::nullopt, "run", numbered(1), deadline);
}

std::string why(const result<message> &got) { return got ? "(an answer)" : got.error().message; }

bool mentions(const std::string &message, std::string_view part) {
  return message.find(part) != std::string::npos;
}

/// A ROUTER that answers every message with these parts.
class answering {
public:
  explicit answering(std::vector<frame> parts) : socket_(context_, zmq::socket_type::router) {
    socket_.set(zmq::sockopt::linger, 0);
    socket_.set(zmq::sockopt::rcvtimeo,
                static_cast<int>(std::chrono::milliseconds(long_enough).count()));
    socket_.bind("tcp://127.0.0.1:*");
    endpoint_ = socket_.get(zmq::sockopt::last_endpoint);
    thread_ = std::thread([this, parts = std::move(parts)] { serve(parts); });
  }
  ~answering() { thread_.join(); }
  answering(const answering &) = delete;
  answering &operator=(const answering &) = delete;
  const std::string &endpoint() const { return endpoint_; }

private:
  void serve(const std::vector<frame> &parts) {
    zmq::message_t route;
    if (!socket_.recv(route))
      return;
    for (zmq::message_t rest; socket_.get(zmq::sockopt::rcvmore);)
      if (!socket_.recv(rest))
        return;
    socket_.send(route, zmq::send_flags::sndmore);
    for (std::size_t i = 0; i < parts.size(); ++i)
      socket_.send(zmq::const_buffer(parts[i].data(), parts[i].size()),
                   i + 1 < parts.size() ? zmq::send_flags::sndmore : zmq::send_flags::none);
  }

  zmq::context_t context_;
  zmq::socket_t socket_;
  std::string endpoint_;
  std::thread thread_;
};

/// A host with keys in a folder of its own.
hub_options with_keys(const temporary_folder &folder) {
  auto options = some_options("directory", "tcp://127.0.0.1:*");
  make_keys(folder / "keys").value();
  options.curve = load_keys(folder / "keys").value();
  return options;
}

BOOST_AUTO_TEST_SUITE(clients)

BOOST_AUTO_TEST_CASE(a_question_gets_its_answer) {
  host there(some_options("directory", "tcp://127.0.0.1:*"));
  auto answer = asked(there, numbered(7));
  const auto questions = there.log.wait_for_questions(1);
  BOOST_REQUIRE(questions.size() == 1U);
  BOOST_TEST(number_of(questions[0].second) == 7U);
  there.sockets->answer(questions[0].first, {numbered(8)[0], some_bytes(1 << 20, 3), frame()});
  const auto got = answer.get();
  BOOST_REQUIRE(got);
  BOOST_REQUIRE(got->size() == 3U);
  BOOST_TEST(number_of(*got) == 8U);
  BOOST_TEST(same((*got)[1], some_bytes(1 << 20, 3)));
}

BOOST_AUTO_TEST_CASE(answers_go_to_those_who_asked) {
  host there(some_options("directory", "tcp://127.0.0.1:*"));
  std::vector<std::future<result<message>>> answers;
  for (std::uint64_t i = 0; i < 8; ++i)
    answers.push_back(asked(there, numbered(i)));
  for (const auto &[request, question] : there.log.wait_for_questions(8))
    there.sockets->answer(request, numbered(100 + number_of(question)));
  for (std::uint64_t i = 0; i < 8; ++i)
    BOOST_TEST(number_of(answers[i].get().value()) == 100 + i);
}

BOOST_AUTO_TEST_CASE(ipc_and_ipv6_are_asked_alike) {
  const temporary_folder folder;
  for (const std::string &bind :
       {"ipc://" + (folder / "d.sock").string(), std::string("tcp://[::1]:*")}) {
    host there(some_options("directory", bind));
    auto answer = asked(there, numbered(7));
    for (const auto &[request, question] : there.log.wait_for_questions(1))
      there.sockets->answer(request, question);
    BOOST_TEST(number_of(answer.get().value()) == 7U);
  }
}

BOOST_AUTO_TEST_CASE(with_keys_a_question_gets_its_answer) {
  const temporary_folder folder;
  host there(with_keys(folder));
  auto answer = asked(there, numbered(7));
  for (const auto &[request, question] : there.log.wait_for_questions(1))
    there.sockets->answer(request, question);
  BOOST_TEST(number_of(answer.get().value()) == 7U);
}

BOOST_AUTO_TEST_CASE(a_key_that_is_not_let_in_is_told_at_once) {
  const temporary_folder folder;
  const host there(with_keys(folder));
  make_keys(folder / "other").value();
  const auto to = there.target();
  const auto got = ask(to.endpoint, to.key, load_keys(folder / "other").value(), "run", numbered(1),
                       long_enough);
  BOOST_REQUIRE(!got);
  BOOST_TEST((got.error().code == errc::peer_lost), why(got));
  BOOST_TEST(mentions(why(got), "allowed"), why(got));
}

BOOST_AUTO_TEST_CASE(a_side_without_keys_is_told_so_before_it_asks) {
  const temporary_folder folder;
  const host there(with_keys(folder));
  const auto to = there.target();
  BOOST_TEST(mentions(why(ask(to.endpoint, to.key, std::nullopt, "run", {}, 1s)), "curve.folder"));
  BOOST_TEST(mentions(why(ask(to.endpoint, "", there.options.curve, "run", {}, 1s)),
                      "curve.directory_key"));
}

BOOST_AUTO_TEST_CASE(a_question_without_keys_to_one_that_has_them_fails_at_once) {
  const temporary_folder folder;
  const host there(with_keys(folder));
  const auto got = asked_at(there.target().endpoint, long_enough);
  BOOST_REQUIRE(!got);
  BOOST_TEST((got.error().code == errc::peer_lost), why(got));
}

BOOST_AUTO_TEST_CASE(nobody_there_is_told_at_once) {
  const temporary_folder folder;
  std::string endpoint;
  {
    const host gone(some_options("directory", "tcp://127.0.0.1:*"));
    endpoint = gone.target().endpoint;
  }
  for (const std::string &at : {endpoint, "ipc://" + (folder / "none").string()}) {
    const auto got = asked_at(at, long_enough);
    BOOST_REQUIRE(!got);
    BOOST_TEST((got.error().code == errc::peer_lost), why(got));
    BOOST_TEST(mentions(why(got), at), why(got));
    BOOST_TEST(mentions(why(got), "nobody"), why(got));
  }
}

BOOST_AUTO_TEST_CASE(no_answer_is_told_at_the_deadline) {
  host there(some_options("directory", "tcp://127.0.0.1:*"));
  const auto got = asked(there, numbered(1), "run", 50ms).get();
  BOOST_REQUIRE(!got);
  BOOST_TEST((got.error().code == errc::timed_out), why(got));
  BOOST_TEST(mentions(why(got), "no answer within 0.05 s"), why(got));
  BOOST_TEST(mentions(why(got), there.target().endpoint), why(got));
}

BOOST_AUTO_TEST_CASE(another_run_refuses_and_says_which_it_is) {
  host there(some_options("directory", "tcp://127.0.0.1:*"));
  const auto got = asked(there, numbered(1), "other").get();
  BOOST_REQUIRE(!got);
  BOOST_TEST((got.error().code == errc::peer_lost));
  BOOST_TEST(mentions(why(got), "'run'"), why(got));
}

BOOST_AUTO_TEST_CASE(without_a_run_whichever_answers) {
  host there(some_options("directory", "tcp://127.0.0.1:*"));
  auto answer = asked(there, numbered(7), "");
  for (const auto &[request, question] : there.log.wait_for_questions(1))
    there.sockets->answer(request, question);
  BOOST_TEST(number_of(answer.get().value()) == 7U);
}

BOOST_AUTO_TEST_CASE(a_process_that_ends_while_it_is_asked_is_told) {
  host there(some_options("directory", "tcp://127.0.0.1:*"));
  auto answer = asked(there, numbered(1));
  BOOST_REQUIRE(there.log.wait_for_questions(1).size() == 1U);
  there.sockets.reset();
  const auto got = answer.get();
  BOOST_REQUIRE(!got);
  BOOST_TEST((got.error().code == errc::peer_lost), why(got));
}

BOOST_AUTO_TEST_CASE(a_question_that_is_too_large_is_not_asked) {
  const auto got = ask("tcp://127.0.0.1:1", "", std::nullopt, "run",
                       {some_bytes(64 << 10, 1), numbered(1)[0]}, 1s);
  BOOST_REQUIRE(!got);
  BOOST_TEST((got.error().code == errc::too_large));
}

BOOST_AUTO_TEST_CASE(what_is_no_endpoint_is_named) {
  for (const char *endpoint : {"", "node:7", "tcp://127.0.0.1:*"}) {
    const auto got = asked_at(endpoint, 1s);
    BOOST_REQUIRE(!got);
    BOOST_TEST((got.error().code == errc::bad_argument), why(got));
  }
}

BOOST_AUTO_TEST_CASE(what_is_no_answer_is_not_taken_for_one) {
  const auto header = [](link_kind kind, std::uint64_t request) {
    return encode({.kind = kind, .request = request}, 1);
  };
  const frame body = numbered(1)[0];
  for (const std::vector<frame> &parts :
       {std::vector{body}, std::vector{frame()}, std::vector{header(link_kind::reply, 2), body},
        std::vector{header(link_kind::request, 1), body}, std::vector{header(link_kind::reply, 1)},
        std::vector{header(link_kind::reply, 1), body, body}}) {
    const answering there(parts);
    const auto got = asked_at(there.endpoint(), long_enough);
    BOOST_REQUIRE(!got);
    BOOST_TEST((got.error().code != errc::timed_out), why(got));
  }
}

BOOST_AUTO_TEST_CASE(a_refusal_gives_its_reason) {
  const answering there({encode({.kind = link_kind::refusal, .reason = "not today"})});
  BOOST_TEST(mentions(why(asked_at(there.endpoint(), long_enough)), "not today"));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
