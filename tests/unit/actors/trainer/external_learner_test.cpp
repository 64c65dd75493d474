// SPDX-License-Identifier: Apache-2.0
#include "actors/trainer/external_learner.hpp"

#include "runtime/collective/local.hpp"
#include "tests/unit/actors/trainer/feed_fixture.hpp"

namespace millrace::test {
namespace {

using namespace std::chrono_literals;

struct learner_fixture : feed_fixture {
  std::vector<std::unique_ptr<collective>> ranks = make_local_collective(1, 1s);

  learner_fixture() { open(1); }

  std::future<status> apply(learner &subject, std::uint64_t number) {
    return std::async(std::launch::async, [this, &subject, number] {
      return subject.step({number, {}, {1, 2, 3}, {}, {}, *ranks[0]});
    });
  }
  std::vector<std::byte> saved_after(std::uint64_t steps) {
    external_learner subject(desk);
    ask(feed_wish::here);
    subject.reset();
    BOOST_REQUIRE(subject.begin(1));
    for (std::uint64_t number = 1; number <= steps; ++number) {
      auto done = apply(subject, number);
      answer_to(feed_wish::next, 0, number - 1);
      ask(feed_wish::trained, 0, number);
      BOOST_REQUIRE(done.get());
    }
    ask(feed_wish::durable, 0, steps);
    return subject.save("relative/rank-3").value();
  }
};

BOOST_FIXTURE_TEST_SUITE(external_learners, learner_fixture)

BOOST_AUTO_TEST_CASE(one_that_was_loaded_goes_on_after_its_step_and_says_so_with_its_folder) {
  const auto saved = saved_after(3);
  open(1);
  external_learner subject(desk);
  ask(feed_wish::here);
  BOOST_REQUIRE(subject.load(saved, "/state/step-000003/../step-000003/rank-3", 3));
  BOOST_REQUIRE(subject.begin(2));
  const auto begun = answer_to(feed_wish::next, 0, 0, 0);
  BOOST_TEST(begun.step == 3U);
  BOOST_TEST(begun.folder == "/state/step-000003/rank-3");
  auto done = apply(subject, 4);
  const auto got = answer_to(feed_wish::next, 0, 3, 2);
  BOOST_TEST(got.step == 4U);
  BOOST_TEST(got.ce_tokens == 2);
  ask(feed_wish::trained, 0, 4);
  BOOST_TEST(done.get().has_value());
}

BOOST_AUTO_TEST_CASE(a_rank_counts_as_there_once_its_trainers_have_come) {
  external_learner subject(desk);
  auto fresh = std::async(std::launch::async, [&] { subject.reset(); });
  BOOST_TEST((fresh.wait_for(20ms) == std::future_status::timeout));
  ask(feed_wish::here);
  fresh.get();
}

BOOST_AUTO_TEST_CASE(the_end_of_the_run_ends_the_wait_for_them_and_the_next_call_says_so) {
  external_learner subject(desk);
  auto fresh = std::async(std::launch::async, [&] { subject.reset(); });
  desk->end(error{errc::timed_out, "too late"});
  fresh.get();
  const auto done = apply(subject, 1).get();
  BOOST_REQUIRE(!done);
  BOOST_TEST(done.error().message == "too late");
}

BOOST_AUTO_TEST_CASE(a_step_that_is_not_the_next_is_refused) {
  external_learner subject(desk);
  const auto done = apply(subject, 2).get();
  BOOST_REQUIRE(!done);
  BOOST_TEST((done.error().code == errc::conflict));
}

BOOST_AUTO_TEST_CASE(what_another_one_has_saved_is_refused) {
  auto saved = saved_after(2);
  open(1);
  ask(feed_wish::here);
  external_learner subject(desk);
  const auto problem = [&](std::uint64_t step) {
    const auto loaded = subject.load(saved, {}, step);
    BOOST_REQUIRE(!loaded);
    return loaded.error().code;
  };
  BOOST_TEST((problem(3) == errc::conflict));
  saved[0] = std::byte{2};
  BOOST_TEST((problem(2) == errc::unsupported));
  saved.pop_back();
  BOOST_TEST((problem(2) == errc::bad_format));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
} // namespace millrace::test
