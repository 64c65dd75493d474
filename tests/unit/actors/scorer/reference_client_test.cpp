// SPDX-License-Identifier: Apache-2.0
#include "actors/scorer/reference_client.hpp"

#include <condition_variable>
#include <limits>
#include <map>
#include <mutex>
#include <set>

#include <boost/test/unit_test.hpp>

#include "actors/scorer/reference_attempt.hpp"
#include "tests/support/shown.hpp"
#include "tests/support/stand_in_server.hpp"

using namespace millrace;
using test::scripted_reply;
using test::seen_request;
using after = scripted_reply::after;
using std::chrono::milliseconds;

namespace {

/// The answers to what a test asks, as they come.
class answers {
public:
  reference_client::done taker() {
    return [this](reference_client::answer got) {
      const std::lock_guard lock(mutex_);
      got_.push_back(std::move(got));
      changed_.notify_all();
    };
  }
  /// Waits for so many.
  std::vector<reference_client::answer> wait(std::size_t count) {
    std::unique_lock lock(mutex_);
    BOOST_REQUIRE(
        changed_.wait_for(lock, std::chrono::seconds(60), [&] { return got_.size() >= count; }));
    return got_;
  }

private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<reference_client::answer> got_;
};

reference_prompt prompt(std::vector<std::int32_t> tokens, std::uint64_t hint_tokens = 0,
                        std::string hint = {}) {
  reference_prompt out;
  out.tokens = std::move(tokens);
  out.hint_tokens = hint_tokens;
  out.hint = std::move(hint);
  return out;
}

/// A client that does not wait between tries, and notes how long it would.
struct patient_client {
  explicit patient_client(const std::string &url, std::uint32_t retries = 3, double timeout_s = 60)
      : client({.server = {.endpoint = url, .model = "m"},
                .limits = {.concurrency = 4, .timeout_s = timeout_s, .retries = retries},
                .seed = 31,
                .pause = [this](milliseconds length) {
                  const std::lock_guard lock(mutex);
                  pauses.push_back(length);
                }}) {}

  /// The answer to one prompt: values, or "KIND: MESSAGE".
  std::string ask(reference_prompt what) {
    answers got;
    client.ask({std::move(what)}, got.taker());
    const auto answer = got.wait(1).front();
    return answer ? test::shown(answer->front())
                  : fmt::format("{}: {}", to_string(answer.error().code), answer.error().message);
  }

  std::mutex mutex;
  std::vector<milliseconds> pauses;
  reference_client client;
};

/// What a client gives for a branch that nothing comes before.
std::string values_of(const std::vector<std::int32_t> &tokens) {
  auto values = test::stand_in_logprobs(tokens);
  values[0] = std::numeric_limits<float>::quiet_NaN();
  return test::shown(values);
}

/// What a client says of a server that always does this, without the server's address.
std::string verdict_on(const test::stand_in_server::script &script, double timeout_s = 60) {
  test::stand_in_server server(script);
  patient_client asking(server.url(), 1, timeout_s);
  auto said = asking.ask(prompt({1, 2, 3}));
  if (const auto at = said.find(server.url() + ": "); at != std::string::npos)
    said.erase(at, server.url().size() + 2);
  return said;
}

/// The same with an honest answer in which `piece` is replaced.
std::string verdict_on_lie(std::string piece, std::string by) {
  return verdict_on([=](const seen_request &request) -> scripted_reply {
    auto text = test::completion_answer(request);
    const auto at = text.find(piece);
    MILLRACE_ASSERT(at != std::string::npos, "'{}' is not in {}", piece, text);
    return {test::http_ok(text.replace(at, piece.size(), by))};
  });
}

bool holds(const std::string &text, const std::string &piece) {
  return text.find(piece) != std::string::npos;
}

} // namespace

BOOST_AUTO_TEST_SUITE(reference_clients)

BOOST_AUTO_TEST_CASE(each_token_of_a_branch_gets_the_servers_value) {
  test::stand_in_server server(test::honest);
  patient_client asking(server.url());
  const std::vector<std::int32_t> tokens{5, 6, 7, 8};
  BOOST_TEST(asking.ask(prompt(tokens)) == values_of(tokens));
}

BOOST_AUTO_TEST_CASE(a_hint_comes_before_the_branch_and_has_no_values) {
  test::stand_in_server server(test::honest);
  patient_client asking(server.url());
  const auto all = test::stand_in_logprobs(std::vector<std::int32_t>{5, 6, 7, 8});
  BOOST_TEST(asking.ask(prompt({5, 6, 7, 8}, 2)) == test::shown(std::vector{all[2], all[3]}));
}

BOOST_AUTO_TEST_CASE(a_hint_of_text_is_tokenized_once) {
  std::atomic<int> tokenized{0};
  test::stand_in_server server([&](const seen_request &request) {
    tokenized += request.path == "/tokenize" ? 1 : 0;
    return test::honest(request);
  });
  patient_client asking(server.url());
  auto whole = test::stand_in_tokens("a \"hint\"");
  const auto hint_tokens = whole.size();
  whole.insert(whole.end(), {9, 10});
  const auto values = test::stand_in_logprobs(whole);
  for (int i = 0; i < 3; ++i)
    BOOST_TEST(asking.ask(prompt({9, 10}, 0, "a \"hint\"")) ==
               test::shown(std::vector{values[hint_tokens], values[hint_tokens + 1]}));
  BOOST_TEST(tokenized == 1);
}

BOOST_AUTO_TEST_CASE(a_hint_without_tokens_is_refused) {
  BOOST_TEST(holds(
      [] {
        test::stand_in_server server([](const seen_request &) -> scripted_reply {
          return {test::http_ok(R"({"tokens":[]})")};
        });
        return patient_client(server.url()).ask(prompt({1, 2}, 0, "x"));
      }(),
      "a hint of 1 bytes has no tokens"));
}

BOOST_AUTO_TEST_CASE(a_group_is_answered_whole_in_the_order_of_its_prompts) {
  test::stand_in_server server(test::honest);
  patient_client asking(server.url());
  answers got;
  std::vector<reference_prompt> prompts;
  for (std::int32_t i = 0; i < 40; ++i)
    prompts.push_back(prompt({i, i + 1, i + 2}));
  asking.client.ask(prompts, got.taker());
  const auto answer = got.wait(1).front();
  BOOST_REQUIRE_MESSAGE(answer, answer.error().message);
  for (std::size_t i = 0; i < prompts.size(); ++i)
    BOOST_TEST(test::shown(answer->at(i)) == values_of(prompts[i].tokens));
}

BOOST_AUTO_TEST_CASE(no_more_requests_are_under_way_than_allowed) {
  std::mutex mutex;
  std::condition_variable changed;
  int under_way = 0;
  int most = 0;
  test::stand_in_server server([&](const seen_request &request) {
    std::unique_lock lock(mutex);
    most = std::max(most, ++under_way);
    changed.notify_all();
    // Holds four until all four are there; then there is no fifth that could join them.
    changed.wait_for(lock, std::chrono::seconds(20), [&] { return most >= 4; });
    --under_way;
    return test::honest(request);
  });
  patient_client asking(server.url());
  answers got;
  for (std::int32_t i = 0; i < 20; ++i)
    asking.client.ask({prompt({i, 1})}, got.taker());
  got.wait(20);
  BOOST_TEST(most == 4);
}

BOOST_AUTO_TEST_CASE(a_server_that_dies_and_comes_back_is_asked_again) {
  test::stand_in_server server([](const seen_request &request) -> scripted_reply {
    const std::string answer = test::http_ok(test::completion_answer(request));
    switch (request.number) {
    case 0:
      return {""};
    case 1:
      return {answer.substr(0, answer.size() / 2)};
    case 2:
      return {test::http_status(503, "loading")};
    default:
      return {answer};
    }
  });
  patient_client asking(server.url(), 3);
  BOOST_TEST(asking.ask(prompt({1, 2})) == values_of({1, 2}));
  BOOST_TEST(server.requests() == 4U);
  BOOST_TEST(asking.pauses.size() == 3U);
}

BOOST_AUTO_TEST_CASE(each_try_has_an_id_of_its_own) {
  std::mutex mutex;
  std::set<std::string> ids;
  test::stand_in_server server([&](const seen_request &request) -> scripted_reply {
    const std::lock_guard lock(mutex);
    ids.insert(request.id);
    return {test::http_status(500)};
  });
  patient_client(server.url(), 3).ask(prompt({1, 2}));
  BOOST_TEST(ids.size() == 4U);
}

BOOST_AUTO_TEST_CASE(a_server_that_is_gone_is_given_up_with_address_tries_and_reason) {
  const auto url = test::url_of_nobody();
  patient_client asking(url, 2);
  const auto said = asking.ask(prompt({1, 2}));
  BOOST_TEST(said.find("peer_lost: " + url + ": given up after 3 tries: connect: ") == 0);
}

BOOST_AUTO_TEST_CASE(a_server_that_stalls_is_left_in_time_and_given_up) {
  for (const auto then : {after::hold, after::drip})
    BOOST_TEST(verdict_on(
                   [then](const seen_request &) -> scripted_reply {
                     return {"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n", then};
                   },
                   0.05) == "timed_out: given up after 2 tries: no whole answer within 50 ms");
}

BOOST_AUTO_TEST_CASE(statuses_that_may_pass_are_tried_again_and_others_are_final) {
  for (const int code : {408, 429, 500, 502, 503})
    BOOST_TEST(verdict_on([code](const seen_request &) -> scripted_reply {
                 return {test::http_status(code, "the\nreason")};
               }) == fmt::format("peer_lost: given up after 2 tries: the server answers {}: the "
                                 "reason",
                                 code));
  for (const auto &[code, kind] : std::map<int, std::string>{{400, "bad_value"},
                                                             {401, "not_found"},
                                                             {403, "not_found"},
                                                             {404, "not_found"},
                                                             {422, "bad_value"}})
    BOOST_TEST(verdict_on([code = code](const seen_request &) -> scripted_reply {
                 return {test::http_status(code, R"({"message":"no such model"})")};
               }) == fmt::format("{}: the server answers {}: {{\"message\":\"no such model\"}}",
                                 kind, code));
  BOOST_TEST(verdict_on([](const seen_request &) -> scripted_reply {
               return {test::http_status(302)};
             }) == "bad_format: the server answers 302");
}

BOOST_AUTO_TEST_CASE(an_answer_of_another_length_is_refused) {
  BOOST_TEST(verdict_on_lie("[null,", "[null,null,").find("bad_value: prompt_logprobs[1]") == 0);
  BOOST_TEST(holds(verdict_on_lie("\"}}]", "\"}},null]"), "the list goes on"));
}

BOOST_AUTO_TEST_CASE(an_answer_with_null_or_a_number_that_is_not_finite_is_refused) {
  for (const char *value : {"null", "NaN", "-Infinity", "-1e999"})
    BOOST_TEST(holds(verdict_on_lie("\"logprob\":", fmt::format("\"logprob\":{},\"x\":", value)),
                     "prompt_logprobs[1]: "));
}

BOOST_AUTO_TEST_CASE(an_answer_for_another_request_is_refused) {
  BOOST_TEST(
      holds(verdict_on_lie("cmpl-millrace-1f-", "cmpl-millrace-1f-9"), "it answers request"));
  BOOST_TEST(holds(verdict_on_lie("{\"2\":", "{\"4\":"), "the answer is for another prompt"));
}

BOOST_AUTO_TEST_CASE(an_answer_with_a_key_twice_or_bytes_after_its_end_is_refused) {
  BOOST_TEST(holds(verdict_on_lie("{\"2\":", "{\"2\":{\"logprob\":-1},\"2\":"), "twice"));
  BOOST_TEST(holds(verdict_on_lie("\"usage\":{\"prompt_tokens\":1}}", "\"usage\":1}]"), "follows"));
}

BOOST_AUTO_TEST_CASE(an_answer_that_is_not_json_by_its_type_is_refused) {
  BOOST_TEST(verdict_on([](const seen_request &) -> scripted_reply {
               return {"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<html>"};
             }) == "bad_format: the answer's content-type is 'text/html', not application/json");
}

BOOST_AUTO_TEST_CASE(an_answer_larger_than_its_prompt_can_need_is_refused) {
  BOOST_TEST(holds(verdict_on([](const seen_request &) -> scripted_reply {
                     return {"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                             "Content-Length: 99999999999\r\n\r\n"};
                   }),
                   "too_large: the answer has 99999999999 bytes"));
  BOOST_TEST(holds(verdict_on([](const seen_request &) -> scripted_reply {
                     return {"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{\"a\":\"" +
                                 std::string(1 << 20, 'a'),
                             after::hold};
                   }),
                   "too_large: the answer has more than"));
}

BOOST_AUTO_TEST_CASE(the_first_error_answers_a_group_and_its_rest_is_not_asked) {
  test::stand_in_server server(
      [](const seen_request &) -> scripted_reply { return {test::http_status(400)}; });
  patient_client asking(server.url());
  answers got;
  asking.client.ask(std::vector(100, prompt({1, 2})), got.taker());
  asking.client.ask({prompt({1, 2})}, got.taker());
  const auto all = got.wait(2);
  BOOST_TEST(!all[0]);
  BOOST_TEST(!all[1]);
  BOOST_TEST(server.requests() < 20U);
}

BOOST_AUTO_TEST_CASE(another_group_is_answered_though_one_failed) {
  test::stand_in_server server([](const seen_request &request) -> scripted_reply {
    if (test::prompt_of(request)[0] == 1)
      return {test::http_status(400)};
    return test::honest(request);
  });
  patient_client asking(server.url());
  BOOST_TEST(asking.ask(prompt({1, 2})).find("bad_value") == 0);
  BOOST_TEST(asking.ask(prompt({2, 2})) == values_of({2, 2}));
}

BOOST_AUTO_TEST_CASE(pauses_double_to_a_limit_and_keep_half_of_it_at_least) {
  const auto pause = [](std::uint32_t next, double jitter) {
    return pause_before(next, milliseconds(200), milliseconds(1000), jitter).count();
  };
  BOOST_TEST(pause(2, 0) == 100);
  BOOST_TEST(pause(2, 1) == 200);
  BOOST_TEST(pause(3, 1) == 400);
  BOOST_TEST(pause(4, 0.5) == 600);
  BOOST_TEST(pause(5, 1) == 1000);
  BOOST_TEST(pause(1'000'000'000, 1) == 1000);
}

BOOST_AUTO_TEST_CASE(pauses_are_those_of_their_seed) {
  const auto pauses = [] {
    patient_client asking(test::url_of_nobody(), 4);
    asking.ask(prompt({1, 2}));
    return asking.pauses;
  };
  BOOST_TEST((pauses() == pauses()));
  const auto one = pauses();
  BOOST_REQUIRE(one.size() == 4);
  for (std::size_t i = 0; i < one.size(); ++i) {
    const auto full = 200LL << i;
    BOOST_TEST(one[i].count() >= full / 2);
    BOOST_TEST(one[i].count() <= full);
  }
}

BOOST_AUTO_TEST_CASE(a_shutdown_answers_everyone_and_does_not_wait_for_the_server) {
  std::mutex mutex;
  std::condition_variable changed;
  int asked = 0;
  test::stand_in_server server([&](const seen_request &) -> scripted_reply {
    const std::lock_guard lock(mutex);
    ++asked;
    changed.notify_all();
    return {"", after::hold};
  });
  answers got;
  reference_client client({.server = {.endpoint = server.url(), .model = ""},
                           .limits = {.concurrency = 2, .timeout_s = 600, .retries = 0}});
  for (int i = 0; i < 5; ++i)
    client.ask({prompt({1, 2})}, got.taker());
  {
    std::unique_lock lock(mutex);
    BOOST_REQUIRE(changed.wait_for(lock, std::chrono::seconds(60), [&] { return asked == 2; }));
  }
  client.shutdown(std::chrono::seconds(60));
  const auto all = got.wait(5);
  BOOST_TEST(all.size() == 5U);
  for (const auto &one : all)
    BOOST_TEST((one.error().code == errc::conflict));
  client.ask({prompt({1, 2})}, got.taker());
  BOOST_TEST(holds(got.wait(6).back().error().message, "shut down"));
}

BOOST_AUTO_TEST_CASE(a_shutdown_interrupts_a_pause) {
  reference_client client({.server = {.endpoint = test::url_of_nobody(), .model = ""},
                           .limits = {.concurrency = 1, .timeout_s = 600, .retries = 9},
                           .first_pause = std::chrono::hours(1),
                           .longest_pause = std::chrono::hours(1)});
  answers got;
  client.ask({prompt({1, 2})}, got.taker());
  client.shutdown(std::chrono::seconds(60));
  BOOST_TEST((got.wait(1).front().error().code == errc::conflict));
}

BOOST_AUTO_TEST_SUITE_END()
