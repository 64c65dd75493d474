// SPDX-License-Identifier: Apache-2.0
#include "actors/scorer/max_rl.hpp"

#include <limits>

#include <boost/test/unit_test.hpp>

using namespace millrace;

namespace {

std::vector<trace_score_input> traces_of(const std::vector<double> &rewards) {
  std::vector<trace_score_input> out;
  for (auto reward : rewards)
    out.push_back({.episode = static_cast<std::uint32_t>(out.size()),
                   .agent = "a",
                   .reward = reward,
                   .trainable_tokens = 1});
  return out;
}

std::vector<float> advantages(const std::vector<double> &rewards) {
  const auto score = max_rl(traces_of(rewards));
  BOOST_REQUIRE_MESSAGE(score, score.error().message);
  std::vector<float> out;
  for (const auto &each : score->advantages)
    out.push_back(each.value());
  return out;
}

} // namespace

BOOST_AUTO_TEST_SUITE(max_rls)

BOOST_AUTO_TEST_CASE(a_rare_success_weighs_as_many_times_as_it_is_rare) {
  const std::vector<float> want{-1, -1, 3, -1};
  BOOST_TEST(advantages({0, 0, 1, 0}) == want);
}

BOOST_AUTO_TEST_CASE(equal_rewards_have_exactly_zero) {
  const std::vector<float> want{0, 0, 0};
  BOOST_TEST(advantages({0.1, 0.1, 0.1}) == want);
  BOOST_TEST(advantages({0.1, 0.1 + 1e-12, 0.1}) == want); // float32 rewards
}

BOOST_AUTO_TEST_CASE(a_mean_that_is_not_positive_gives_zero) {
  const std::vector<float> want{0, 0};
  BOOST_TEST(advantages({0, 0}) == want);
  BOOST_TEST(advantages({-1, 1}) == want);
  BOOST_TEST(advantages({-3, 1}) == want);
  // 2.5e-9 in double, 0 in the float32 of the source.
  BOOST_TEST(advantages({-0.1, -0.2, 0.3}) == (std::vector<float>{0, 0, 0}));
}

BOOST_AUTO_TEST_CASE(one_survivor_has_zero) {
  BOOST_TEST(advantages({5}) == std::vector<float>{0});
}

BOOST_AUTO_TEST_CASE(an_advantage_beyond_float32_is_refused) {
  constexpr double tiny = std::numeric_limits<float>::denorm_min();
  const auto found = max_rl(traces_of({1e30, -1e30, 3 * tiny, 0}));
  BOOST_TEST_REQUIRE(!found);
  BOOST_TEST(found.error().message.find("max_rl: the advantage of episode 0") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
