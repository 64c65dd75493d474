// SPDX-License-Identifier: Apache-2.0
#include "actors/scorer/hierarchical_grpo.hpp"

#include <limits>

#include <boost/test/unit_test.hpp>

using namespace millrace;

namespace {

trace_score_input trace(std::uint32_t episode, std::string_view agent, double reward) {
  return {.episode = episode, .agent = agent, .reward = reward, .trainable_tokens = 1};
}

std::vector<float> advantages(const std::vector<trace_score_input> &traces,
                              std::vector<std::string> episode_agents = {}) {
  env_config config;
  config.episode_agents = std::move(episode_agents);
  const auto score = hierarchical_grpo(traces, config);
  BOOST_REQUIRE_MESSAGE(score, score.error().message);
  BOOST_TEST(!score->rl_weight);
  std::vector<float> out;
  for (const auto &each : score->advantages)
    out.push_back(each.value());
  return out;
}

} // namespace

BOOST_AUTO_TEST_SUITE(hierarchical_grpos)

BOOST_AUTO_TEST_CASE(an_agent_is_compared_with_itself_over_the_group) {
  const std::vector<float> want{-1, -2, 1, 2};
  BOOST_TEST(advantages({trace(0, "a", 0), trace(0, "b", 10), trace(1, "a", 2),
                         trace(1, "b", 14)}) == want);
}

BOOST_AUTO_TEST_CASE(an_episode_agent_is_compared_with_itself_in_its_episode) {
  const std::vector<float> want{-0.5F, 0.5F, -5, 5};
  BOOST_TEST(advantages({trace(0, "solver", 0), trace(0, "solver", 1), trace(1, "solver", 10),
                         trace(1, "solver", 20)},
                        {"solver"}) == want);
}

BOOST_AUTO_TEST_CASE(peers_of_one_reward_have_exactly_zero_though_their_mean_is_not_exact) {
  const std::vector<float> want{0, 0, 0, -1, 1};
  BOOST_TEST(advantages({trace(0, "a", 0.1), trace(1, "a", 0.1), trace(2, "a", 0.1),
                         trace(0, "b", 1), trace(1, "b", 3)}) == want);
}

BOOST_AUTO_TEST_CASE(a_trace_without_peers_has_zero) {
  const std::vector<float> want{0, 0};
  BOOST_TEST(advantages({trace(0, "a", 7), trace(1, "a", 8)}, {"a"}) == want);
}

BOOST_AUTO_TEST_CASE(an_advantage_beyond_float32_is_refused) {
  constexpr double largest = std::numeric_limits<float>::max();
  const std::vector traces{trace(0, "a", -largest), trace(1, "a", largest), trace(2, "a", largest)};
  BOOST_TEST(hierarchical_grpo(traces, {}).error().message.find("episode 0") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
