// SPDX-License-Identifier: Apache-2.0
#include "actors/trainer/replay_policy.hpp"

#include <boost/test/unit_test.hpp>

#include "runtime/collective/local.hpp"

namespace millrace {
namespace {

/// The one rank of a job.
collective &alone() {
  static const auto ranks = make_local_collective(1, std::chrono::seconds(1));
  return *ranks[0];
}

learner_step some_step(std::uint64_t step, std::uint8_t digest = 1) {
  learner_step out{step, {}, {10, 20, 30}, {}, alone()};
  out.digest.bytes.fill(digest);
  return out;
}

void apply(learner &subject, std::uint64_t first, std::uint64_t last) {
  for (auto step = first; step <= last; ++step)
    BOOST_REQUIRE(subject.step(some_step(step)));
}

BOOST_AUTO_TEST_SUITE(replay_policies)

BOOST_AUTO_TEST_CASE(a_policy_that_was_loaded_goes_on_as_if_it_had_never_stopped) {
  replay_policy undisturbed;
  apply(undisturbed, 1, 9);
  replay_policy before;
  apply(before, 1, 4);
  replay_policy resumed;
  BOOST_REQUIRE(resumed.load(before.save({}).value(), {}, 4));
  apply(resumed, 5, 9);
  BOOST_TEST(resumed.steps() == 9U);
  BOOST_TEST((resumed.digest() == undisturbed.digest()));
  BOOST_TEST(resumed.totals().ce == 180);
}

BOOST_AUTO_TEST_CASE(its_digest_tells_apart_what_it_was_given_and_in_which_step) {
  replay_policy one;
  replay_policy other;
  BOOST_REQUIRE(one.step(some_step(1, 1)));
  BOOST_REQUIRE(other.step(some_step(1, 2)));
  BOOST_TEST((one.digest() != other.digest()));
  BOOST_REQUIRE(one.step(some_step(2, 2)));
  BOOST_REQUIRE(other.step(some_step(2, 1)));
  BOOST_TEST((one.digest() != other.digest()));
}

BOOST_AUTO_TEST_CASE(a_step_that_is_not_the_next_is_refused) {
  replay_policy subject;
  apply(subject, 1, 2);
  for (const std::uint64_t step : {1U, 2U, 4U}) {
    const auto done = subject.step(some_step(step));
    BOOST_REQUIRE(!done);
    BOOST_TEST((done.error().code == errc::conflict));
  }
  BOOST_TEST(subject.steps() == 2U);
}

BOOST_AUTO_TEST_CASE(what_is_not_its_own_or_of_another_step_is_not_loaded) {
  replay_policy subject;
  apply(subject, 1, 3);
  const auto saved = subject.save({}).value();
  const auto code = [&](std::span<const std::byte> bytes, std::uint64_t step) {
    replay_policy fresh;
    const auto loaded = fresh.load(bytes, {}, step);
    BOOST_TEST(fresh.steps() == 0U);
    return loaded ? errc{} : loaded.error().code;
  };
  BOOST_TEST((code(saved, 4) == errc::conflict));
  BOOST_TEST((code(std::span(saved).first(saved.size() - 1), 3) == errc::bad_format));
  auto newer = saved;
  newer[0] = std::byte{2};
  BOOST_TEST((code(newer, 3) == errc::unsupported));
}

BOOST_AUTO_TEST_CASE(a_reset_policy_is_a_new_one) {
  replay_policy subject;
  apply(subject, 1, 3);
  subject.reset();
  BOOST_TEST((subject.save({}).value() == replay_policy().save({}).value()));
}

BOOST_AUTO_TEST_CASE(a_config_can_name_only_policies_that_there_are) {
  BOOST_TEST(make_learner("replay").has_value());
  const auto made = make_learner("grpo");
  BOOST_REQUIRE(!made);
  BOOST_TEST((made.error().code == errc::bad_config));
  BOOST_TEST(made.error().message == "trainer.policy: there is no 'grpo'; there is: replay");
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
} // namespace millrace
