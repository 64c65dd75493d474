// SPDX-License-Identifier: Apache-2.0
#include "actors/trainer/feed_desk.hpp"

#include <thread>

#include "actors/trainer/feed_desks.hpp"
#include "tests/unit/actors/trainer/feed_fixture.hpp"

namespace millrace::test {
namespace {

using namespace std::chrono_literals;

BOOST_FIXTURE_TEST_SUITE(feed_desks_suite, feed_fixture)

BOOST_AUTO_TEST_CASE(a_step_goes_to_who_asks_before_or_after_it_is_there) {
  open(1);
  begin();
  const auto early = ask(feed_wish::next);
  BOOST_TEST(!answers.has(early));
  auto first = train(1);
  const auto got = answers.wait_for(early).about;
  BOOST_TEST((got.state == feed_state::step));
  BOOST_TEST(got.step == 1U);
  BOOST_TEST(got.micro_batches == 2U);
  BOOST_TEST(got.rl_tokens == 10);
  BOOST_TEST(got.ref_kl_tokens == 30);
  BOOST_TEST(got.digest.hex() == std::string("07070707070707070707070707070707"));
  BOOST_TEST((answer_to(feed_wish::trained, 0, 1).state == feed_state::noted));
  BOOST_TEST(first.get().has_value());
  auto second = train(2);
  BOOST_TEST(answer_to(feed_wish::next, 0, 1).step == 2U);
  ask(feed_wish::trained, 0, 2);
  BOOST_TEST(second.get().has_value());
}

BOOST_AUTO_TEST_CASE(a_question_that_is_asked_again_has_the_same_answer) {
  open(1);
  begin();
  auto done = train(1);
  for (int i = 0; i < 2; ++i)
    BOOST_TEST(answer_to(feed_wish::next).step == 1U);
  auto asked = question(feed_wish::micro_batch, 0, 1);
  asked.index = 1;
  for (int i = 0; i < 2; ++i) {
    const auto got = answers.wait_for(ask(asked));
    BOOST_TEST((got.about.state == feed_state::micro_batch));
    BOOST_REQUIRE(got.parts.size() == 2U);
    BOOST_TEST(got.parts[1].size() == 100U);
    BOOST_TEST((got.parts[1].bytes()[0] == std::byte{1}));
  }
  for (int i = 0; i < 2; ++i)
    BOOST_TEST((answer_to(feed_wish::trained, 0, 1).state == feed_state::noted));
  BOOST_TEST(done.get().has_value());
  BOOST_TEST((answer_to(feed_wish::trained, 0, 1).state == feed_state::noted));
}

BOOST_AUTO_TEST_CASE(peers_get_the_same_frames_and_a_step_is_trained_when_all_have_said_so) {
  open(3);
  begin();
  auto done = train(1);
  const std::byte *bytes = nullptr;
  for (std::uint32_t peer = 0; peer < 3; ++peer) {
    BOOST_TEST(answer_to(feed_wish::next, peer).step == 1U);
    const auto got = answers.wait_for(ask(feed_wish::micro_batch, peer, 1));
    BOOST_REQUIRE(got.parts.size() == 2U);
    BOOST_TEST((bytes == nullptr || got.parts[1].data() == bytes));
    bytes = got.parts[1].data();
  }
  ask(feed_wish::trained, 2, 1);
  ask(feed_wish::trained, 0, 1);
  const auto more = ask(feed_wish::next, 0, 1);
  BOOST_TEST((done.wait_for(20ms) == std::future_status::timeout));
  BOOST_TEST(!answers.has(more));
  ask(feed_wish::trained, 1, 1);
  BOOST_TEST(done.get().has_value());
}

BOOST_AUTO_TEST_CASE(nobody_waits_for_those_who_have_not_come_without_showing_it) {
  open(2);
  auto all = std::async(std::launch::async, [&] { return desk->wait_for_all(); });
  const auto until = feed_desk::clock::now() + 20s;
  while (shown().empty() && feed_desk::clock::now() < until)
    std::this_thread::yield();
  BOOST_TEST(shown() == "trainer-3 waits for 2 of 2 Python trainers to attach");
  ask(feed_wish::here, 1);
  while (shown().find("1 of 2") == std::string::npos && feed_desk::clock::now() < until)
    std::this_thread::yield();
  BOOST_TEST(shown() == "trainer-3 waits for 1 of 2 Python trainers to attach");
  ask(feed_wish::here, 0);
  BOOST_TEST(all.get().has_value());
}

BOOST_AUTO_TEST_CASE(a_checkpoint_is_there_when_all_have_said_so) {
  open(2);
  begin(4);
  auto trained = train(5);
  for (std::uint32_t peer = 0; peer < 2; ++peer) {
    BOOST_TEST(answer_to(feed_wish::next, peer, 4).step == 5U);
    ask(feed_wish::trained, peer, 5);
  }
  BOOST_TEST(trained.get().has_value());
  // One says it before it is asked.
  BOOST_TEST((answer_to(feed_wish::durable, 0, 5).state == feed_state::noted));
  auto saved = save();
  const auto asked = answer_to(feed_wish::next, 1, 5);
  BOOST_TEST((asked.state == feed_state::save));
  BOOST_TEST(asked.step == 5U);
  BOOST_TEST(asked.folder == "/state/save");
  const auto other = ask(feed_wish::next, 0, 5);
  BOOST_TEST((saved.wait_for(20ms) == std::future_status::timeout));
  ask(feed_wish::durable, 1, 5);
  BOOST_TEST(saved.get().has_value());
  BOOST_TEST(!answers.has(other));
}

BOOST_AUTO_TEST_CASE(a_generation_says_where_it_goes_on) {
  open(1);
  ask(feed_wish::here);
  BOOST_REQUIRE(desk->wait_for_all());
  const auto early = ask(feed_wish::next, 0, 0, 0);
  BOOST_TEST(!answers.has(early));
  desk->begin(6, 12, "/state/step-000012/rank-3");
  const auto got = answers.wait_for(early).about;
  BOOST_TEST((got.state == feed_state::begin));
  BOOST_TEST(got.generation == 6U);
  BOOST_TEST(got.step == 12U);
  BOOST_TEST(got.folder == "/state/step-000012/rank-3");
  BOOST_TEST(!desk->train(step(12)).has_value());
}

BOOST_AUTO_TEST_CASE(what_was_not_handed_out_cannot_be_trained_or_durable_or_fetched) {
  open(1);
  begin();
  auto done = train(1);
  BOOST_TEST(answer_to(feed_wish::next).step == 1U);
  const auto refusal = [&](feed_wish wish, std::uint64_t step) {
    const auto got = answer_to(wish, 0, step);
    BOOST_TEST((got.state == feed_state::refused));
    return got.reason;
  };
  BOOST_TEST(refusal(feed_wish::trained, 2) == "step 2 was not handed out last, 1 was");
  BOOST_TEST(refusal(feed_wish::durable, 1) == "step 1 cannot be durable: 0 steps are trained");
  BOOST_TEST(refusal(feed_wish::micro_batch, 2) == "there is no micro batch 0 of step 2 here");
  auto outside = question(feed_wish::micro_batch, 0, 1);
  outside.index = 2;
  BOOST_TEST((answers.wait_for(ask(outside)).about.state == feed_state::refused));
  ask(feed_wish::trained, 0, 1);
  BOOST_TEST(done.get().has_value());
  BOOST_TEST(refusal(feed_wish::micro_batch, 1) == "there is no micro batch 0 of step 1 here");
}

BOOST_AUTO_TEST_CASE(only_two_questions_of_an_asker_wait) {
  open(1);
  begin();
  const auto here = ask(feed_wish::here); // begin() has asked one
  BOOST_TEST(!answers.has(here));
  std::vector<request_id> asked;
  for (int i = 0; i < 100; ++i) {
    asked.push_back(ask(feed_wish::here));
    asked.push_back(ask(feed_wish::next));
  }
  int waiting = 0;
  for (const auto one : asked)
    waiting += answers.has(one) ? 0 : 1;
  BOOST_TEST(waiting == 2);
  desk->end(std::nullopt);
  for (const auto one : asked)
    BOOST_TEST(answers.has(one));
}

BOOST_AUTO_TEST_CASE(a_seat_is_taken_until_its_owner_is_silent_or_leaves) {
  open(1);
  const auto now = feed_desk::clock::now();
  auto one = question(feed_wish::here);
  auto other = one;
  other.asker = 9;
  desk->ask(1, one, now);
  desk->ask(2, other, now + 59s);
  BOOST_TEST((answers.wait_for(2).about.state == feed_state::refused));
  BOOST_TEST(answers.wait_for(2).about.reason ==
             "another process is the Python trainer of rank 3: it was heard 59.0 s ago");
  desk->ask(3, other, now + 61s);
  BOOST_TEST(!answers.has(3)); // it has the place
  BOOST_TEST((answers.wait_for(1).about.state == feed_state::refused));
  other.wish = feed_wish::leave;
  desk->ask(4, other, now + 62s);
  BOOST_TEST(answers.has(3));
  desk->ask(5, one, now + 63s);
  BOOST_TEST(!answers.has(5));
}

BOOST_AUTO_TEST_CASE(who_is_silent_in_a_generation_ends_it_for_all) {
  open(2, 200ms);
  begin();
  const auto waits_here = ask(feed_wish::next, 0);
  const auto done = desk->train(step(1));
  BOOST_REQUIRE(!done);
  BOOST_TEST((done.error().code == errc::timed_out));
  BOOST_TEST(done.error().message.find(
                 "the Python trainer of rank 3, peer 0 is gone: nothing heard for 0.") == 0U);
  BOOST_TEST(done.error().message.find(" s in step 1") != std::string::npos);
  BOOST_TEST((answers.wait_for(waits_here).about.state == feed_state::step));
  const auto told = answer_to(feed_wish::here, 1);
  BOOST_TEST((told.state == feed_state::failed));
  BOOST_TEST(told.reason == done.error().message);
  BOOST_TEST(!told.restart);
}

BOOST_AUTO_TEST_CASE(another_process_cannot_go_on_for_one_that_is_gone) {
  open(1, 60s, true);
  begin();
  auto other = question(feed_wish::here);
  other.asker = 9;
  desk->ask(++last, other, feed_desk::clock::now() + 61s);
  const auto told = answers.wait_for(last).about;
  BOOST_TEST((told.state == feed_state::failed));
  BOOST_TEST(told.restart);
  const auto done = desk->train(step(1));
  BOOST_REQUIRE(!done);
  BOOST_TEST((done.error().code == errc::timed_out));
}

BOOST_AUTO_TEST_CASE(who_leaves_a_step_ends_it_with_the_reason) {
  open(1);
  begin();
  auto done = train(1);
  BOOST_TEST(answer_to(feed_wish::next).step == 1U);
  auto leaves = question(feed_wish::leave);
  leaves.reason = "ValueError: no";
  ask(leaves);
  const auto ended = done.get();
  BOOST_REQUIRE(!ended);
  BOOST_TEST(ended.error().message ==
             "the Python trainer of rank 3 has left in step 1: ValueError: no");
}

BOOST_AUTO_TEST_CASE(the_end_of_the_run_ends_every_wait) {
  open(1);
  begin();
  const auto here = ask(feed_wish::here);
  auto done = train(1);
  BOOST_TEST(answer_to(feed_wish::next).step == 1U);
  const auto next = ask(feed_wish::next, 0, 1);
  desk->end(error{errc::restart, "rank 0 is gone"});
  const auto ended = done.get();
  BOOST_REQUIRE(!ended);
  BOOST_TEST((ended.error().code == errc::restart));
  for (const auto one : {here, next, ask(feed_wish::trained, 0, 1)}) {
    const auto told = answers.wait_for(one).about;
    BOOST_TEST((told.state == feed_state::failed));
    BOOST_TEST(told.reason == "rank 0 is gone");
    BOOST_TEST(told.restart);
  }
  BOOST_TEST(!desk->save("").has_value());
  desk->end(std::nullopt); // the first counts
  BOOST_TEST((answer_to(feed_wish::here).state == feed_state::failed));
}

BOOST_AUTO_TEST_CASE(the_end_waits_for_those_who_have_not_heard_of_it_but_not_for_the_silent) {
  open(2);
  begin();
  ask(feed_wish::here, 0);
  ask(feed_wish::here, 1); // answers the ones that begin() has asked; these wait
  desk->end(std::nullopt);
  desk->wait_until_heard(feed_desk::clock::now() + 60s); // both have been told

  open(1, 100ms);
  begin();
  answer_to(feed_wish::trained, 0, 0); // nothing of it waits but here
  desk->end(std::nullopt);
  desk->wait_until_heard(feed_desk::clock::now() + 60s);
  const auto before = feed_desk::clock::now();
  open(1, 100ms);
  answer_to(feed_wish::trained, 0, 0);
  desk->end(std::nullopt);
  desk->wait_until_heard(before + 60s);
  BOOST_TEST((feed_desk::clock::now() < before + 30s));
}

BOOST_AUTO_TEST_CASE(a_process_refuses_ranks_and_peers_that_it_has_not) {
  feed_desks desks({3, 5}, {.rank = 0, .peers = 2}, nullptr);
  desks.answer_through(answers.taker());
  auto asked = question(feed_wish::here);
  const auto reason = [&] {
    desks.ask(++last, asked);
    const auto got = answers.wait_for(last).about;
    BOOST_TEST((got.state == feed_state::refused));
    return got.reason;
  };
  BOOST_TEST(reason() == "trainer.peers is 2 here, and 1 there");
  asked.peers = 2;
  asked.peer = 2;
  BOOST_TEST(reason() == "there is no peer 2: trainer.peers = 2");
  asked.rank = 4;
  BOOST_TEST(reason() == "rank 4 is not in this process; it has: 3, 5");
  feed_desks none({}, {}, nullptr);
  none.answer_through(answers.taker());
  none.ask(++last, asked);
  BOOST_TEST(answers.wait_for(last).about.reason.find("no trainer here is for Python") == 0U);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
} // namespace millrace::test
