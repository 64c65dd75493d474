// SPDX-License-Identifier: Apache-2.0
#include "actors/planner/partition.hpp"

#include <numeric>
#include <random>

#include <boost/test/unit_test.hpp>

#include "actors/planner/swap_refinement.hpp"
#include "tests/unit/actors/planner/naive.hpp"

namespace millrace {
namespace {

BOOST_AUTO_TEST_SUITE(partition_suite)

std::vector<cost_t> random_weights(std::mt19937_64 &random, std::size_t count, cost_t below) {
  std::vector<cost_t> out(count);
  for (auto &w : out)
    w = ((cost_t{random()} << 64) | random()) % below;
  return out;
}

BOOST_AUTO_TEST_CASE(differencing_equals_the_rules_word_by_word) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    std::mt19937_64 random(seed);
    const auto k = 1 + random() % 6;
    const auto below = cost_t{1} << (random() % 100);
    const auto weights = random_weights(random, k * (random() % 9), below);
    const auto got = difference(weights, k);
    BOOST_TEST_CONTEXT("seed " << seed) {
      BOOST_TEST_REQUIRE(got.has_value());
      BOOST_TEST((*got == naive::difference(weights, k)));
    }
  }
}

BOOST_AUTO_TEST_CASE(refinement_equals_trying_every_exchange) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    std::mt19937_64 random(seed);
    const auto k = 1 + random() % 6;
    const auto n = random() % 8; // items of each part
    const auto below = seed % 3 == 0 ? cost_t{4} : cost_t{1} << (random() % 100);
    const auto weights = random_weights(random, k * n, below);
    // Any start, not only a balanced one: more exchanges, and parts that are not sorted.
    std::vector<std::size_t> order(weights.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::shuffle(order.begin(), order.end(), random);
    partitioning start(k);
    for (std::size_t i = 0; i < order.size(); ++i)
      start[i % k].push_back(order[i]);
    auto got = start;
    refine(weights, got);
    BOOST_TEST_CONTEXT("seed " << seed)
    BOOST_TEST((got == naive::refine(weights, start)));
  }
}

BOOST_AUTO_TEST_CASE(every_part_gets_as_many_items) {
  std::mt19937_64 random(7);
  const auto weights = random_weights(random, 60, 1000);
  const auto got = partition(weights, 12);
  BOOST_TEST_REQUIRE(got.has_value());
  for (const auto &part : *got)
    BOOST_TEST(part.size() == 5U);
}

BOOST_AUTO_TEST_CASE(no_weights_give_empty_parts) {
  const auto got = partition({}, 3);
  BOOST_TEST_REQUIRE(got.has_value());
  BOOST_TEST((*got == partitioning(3)));
}

BOOST_AUTO_TEST_CASE(a_number_that_does_not_divide_is_refused) {
  const std::vector<cost_t> weights{1, 2, 3};
  BOOST_TEST((partition(weights, 2).error().code == errc::bad_argument));
  BOOST_TEST((partition(weights, 0).error().code == errc::bad_argument));
}

BOOST_AUTO_TEST_CASE(sums_past_64_bits_are_exact) {
  // In 64 bits these are 0 or 2^63.
  const auto unit = cost_t{1} << 63;
  const std::vector<cost_t> weights{4 * unit, 3 * unit, 2 * unit, unit};
  const auto got = partition(weights, 2);
  BOOST_TEST_REQUIRE(got.has_value());
  BOOST_TEST((*got == partitioning{{1, 2}, {0, 3}}));
}

BOOST_AUTO_TEST_CASE(a_sum_past_126_bits_is_refused_before_it_is_made) {
  const std::vector<cost_t> fits{most_cost - 1, 1};
  BOOST_TEST(partition(fits, 2).has_value());
  const std::vector<cost_t> too_much{most_cost, 1};
  BOOST_TEST((partition(too_much, 2).error().code == errc::too_large));
  const std::vector<cost_t> wraps(8, most_cost);
  BOOST_TEST((partition(wraps, 2).error().code == errc::too_large));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
} // namespace millrace
