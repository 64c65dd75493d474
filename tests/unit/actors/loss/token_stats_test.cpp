// SPDX-License-Identifier: Apache-2.0
#include "actors/loss/token_stats.hpp"

#include <cmath>
#include <limits>

#include <boost/test/unit_test.hpp>

#include "tests/unit/actors/loss/sample_columns.hpp"

namespace millrace::test {
namespace {

BOOST_AUTO_TEST_SUITE(stats_of_tokens)

BOOST_AUTO_TEST_CASE(they_are_sums_over_the_masked_tokens_of_each_sequence) {
  sample_columns in;
  in.loss_mask = {1, 0, 1, 0, 0};
  const floats trainer{-0.5F, 9.0F, -2.0F, 9.0F, 9.0F}; // 9: not looked at
  const floats entropy{1.0F, 9.0F, 0.5F, 9.0F, 9.0F};
  const auto stats = stats_of(in.columns(), trainer, entropy);
  BOOST_REQUIRE_EQUAL(stats.size(), 2);
  const double first = std::exp(0.125), third = std::exp(0.25);
  BOOST_TEST(stats[0].tokens == 2U);
  BOOST_TEST(stats[0].entropy == 1.5);
  BOOST_TEST(stats[0].ratio == first + third, boost::test_tools::tolerance(1e-6));
  BOOST_TEST(stats[0].mismatch_kl == first - 0.125 - 1 + third - 0.25 - 1,
             boost::test_tools::tolerance(1e-5));
  BOOST_TEST(stats[0].ratio_min == first, boost::test_tools::tolerance(1e-6));
  BOOST_TEST(stats[0].ratio_max == third, boost::test_tools::tolerance(1e-6));
  BOOST_TEST(stats[1].tokens == 0U);
}

BOOST_AUTO_TEST_CASE(those_of_no_tokens_change_no_sum) {
  token_stats sum{.tokens = 1, .entropy = 2, .ratio = 3, .ratio_min = 3, .ratio_max = 3};
  sum += token_stats();
  BOOST_TEST(sum.tokens == 1U);
  BOOST_TEST(sum.ratio_min == 3);
  BOOST_TEST(sum.ratio_max == 3);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
} // namespace millrace::test
