// SPDX-License-Identifier: Apache-2.0
#include "actors/scorer/grpo.hpp"

#include <cmath>
#include <limits>
#include <random>

#include <boost/test/unit_test.hpp>

using namespace millrace;
using floats = std::vector<float>;

namespace {

trace_score_input trace(double reward, std::uint64_t trainable = 4) {
  return {.episode = 0,
          .agent = "agent",
          .reward = reward,
          .output_tokens = trainable,
          .total_tokens = trainable + 10,
          .turns = 1,
          .trainable_tokens = trainable};
}

floats advantages_of(const std::vector<trace_score_input> &traces, const env_config &config = {}) {
  const auto score = grpo(traces, config);
  BOOST_REQUIRE_MESSAGE(score, score.error().message);
  floats out;
  for (const auto &advantage : score->advantages)
    out.push_back(*advantage);
  return out;
}

} // namespace

BOOST_AUTO_TEST_SUITE(grpo_scores)

BOOST_AUTO_TEST_CASE(an_advantage_is_the_reward_over_the_mean) {
  BOOST_TEST(advantages_of({trace(1), trace(0), trace(0), trace(1)}) ==
                 (floats{0.5F, -0.5F, -0.5F, 0.5F}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(equal_rewards_give_exact_zeros) {
  for (std::size_t n = 1; n <= 64; ++n)
    for (auto x : advantages_of(std::vector<trace_score_input>(n, trace(0.1))))
      BOOST_TEST_REQUIRE(x == 0.0F);
}

BOOST_AUTO_TEST_CASE(rewards_that_differ_only_as_doubles_are_equal) {
  for (auto x : advantages_of({trace(0.1 + 0.2), trace(0.3), trace(0.3)}))
    BOOST_TEST(x == 0.0F);
}

BOOST_AUTO_TEST_CASE(equal_rewards_give_exact_zeros_under_a_length_weighted_baseline) {
  env_config config;
  config.length_weighted_baseline = true;
  for (auto x : advantages_of({trace(0.7, 3), trace(0.7, 1000), trace(0.7, 7)}, config))
    BOOST_TEST(x == 0.0F);
}

BOOST_AUTO_TEST_CASE(a_length_penalty_on_equal_rewards_is_not_zero) {
  env_config config;
  config.penalty.num_output_tokens_weight = 0.5;
  const auto found = advantages_of({trace(1, 2), trace(1, 4)}, config);
  BOOST_TEST(found[0] == 0.125F); // shaped 0.75 and 0.5
  BOOST_TEST(found[1] == -0.125F);
}

BOOST_AUTO_TEST_CASE(one_survivor_has_advantage_zero) {
  BOOST_TEST(advantages_of({trace(10)})[0] == 0.0F);
}

BOOST_AUTO_TEST_CASE(the_length_weighted_baseline_balances_tokens) {
  env_config config;
  config.length_weighted_baseline = true;
  const auto found = advantages_of({trace(1, 1), trace(0, 3)}, config);
  BOOST_TEST(found[0] == 0.75F);
  BOOST_TEST(found[1] == -0.25F);
}

BOOST_AUTO_TEST_CASE(prompt_aggregation_divides_by_the_groups_trainable_tokens) {
  env_config config;
  BOOST_TEST(!grpo(std::vector{trace(1, 1), trace(0, 3)}, config)->rl_weight.has_value());
  config.aggregation = loss_aggregation::prompt;
  BOOST_TEST(*grpo(std::vector{trace(1, 1), trace(0, 3)}, config)->rl_weight == 0.25F);
}

BOOST_AUTO_TEST_CASE(a_trace_with_fewer_tokens_than_it_produced_has_no_input) {
  env_config config;
  config.penalty.num_input_tokens_weight = 1;
  auto odd = trace(1);
  odd.total_tokens = 0;
  const auto found = advantages_of({odd, odd}, config);
  BOOST_TEST(found[0] == 0.0F);
}

BOOST_AUTO_TEST_CASE(an_advantage_that_float32_cannot_hold_is_an_error) {
  const double largest = std::numeric_limits<float>::max();
  std::vector<trace_score_input> traces(10, trace(-largest));
  traces.push_back(trace(largest));
  const auto score = grpo(traces, {});
  BOOST_REQUIRE(!score);
  BOOST_TEST((score.error().code == errc::bad_value));
}

/// Whatever the rewards, the (length-weighted) advantages sum to nothing and the order of rewards
/// is kept.
BOOST_AUTO_TEST_CASE(advantages_are_centred_and_ordered) {
  const auto seed = std::random_device{}();
  std::minstd_rand random(seed);
  std::uniform_real_distribution<double> reward(-2, 2);
  for (int round = 0; round < 300; ++round) {
    env_config config;
    config.length_weighted_baseline = round % 2 == 1;
    std::vector<trace_score_input> traces;
    for (auto n = 2 + random() % 16; n > 0; --n)
      traces.push_back(trace(reward(random), 1 + random() % 5000));
    const auto found = advantages_of(traces, config);
    double sum = 0;
    double weight = 0;
    for (std::size_t i = 0; i < traces.size(); ++i) {
      const double tokens =
          config.length_weighted_baseline ? static_cast<double>(traces[i].trainable_tokens) : 1.0;
      sum += tokens * static_cast<double>(found[i]);
      weight += tokens;
      for (std::size_t j = 0; j < i; ++j)
        BOOST_TEST_REQUIRE((traces[i].reward < traces[j].reward || found[i] >= found[j]),
                           "seed " << seed);
    }
    BOOST_TEST_REQUIRE(std::abs(sum / weight) < 1e-6, "seed " << seed << ", round " << round);
  }
}

BOOST_AUTO_TEST_SUITE_END()
