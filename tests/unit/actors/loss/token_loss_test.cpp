// SPDX-License-Identifier: Apache-2.0
#include "actors/loss/token_loss.hpp"

#include <limits>
#include <tuple>

#include <boost/test/unit_test.hpp>

namespace millrace::test {
namespace {

using both = std::tuple<float, double>;

/// The values next to a threshold, which all three rules let stay at the threshold itself.
template <class T> T above(T value) {
  return std::nextafter(value, std::numeric_limits<T>::infinity());
}
template <class T> T below(T value) {
  return std::nextafter(value, -std::numeric_limits<T>::infinity());
}

const loss_config quarter{.dppo_mask_low = 0.25, .dppo_mask_high = 0.5, .ipo_threshold = 0.125};

BOOST_AUTO_TEST_SUITE(token_loss_suite)

BOOST_AUTO_TEST_CASE_TEMPLATE(a_positive_advantage_is_hit_only_above_the_high_threshold, T, both) {
  BOOST_TEST(!is_hit_default(T(0.5), T(1), quarter));
  BOOST_TEST(is_hit_default(above(T(0.5)), T(1), quarter));
  BOOST_TEST(!is_hit_default(T(-0.75), T(1), quarter));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_negative_advantage_is_hit_only_below_the_low_threshold, T, both) {
  BOOST_TEST(!is_hit_default(T(-0.25), T(-1), quarter));
  BOOST_TEST(is_hit_default(below(T(-0.25)), T(-1), quarter));
  BOOST_TEST(!is_hit_default(T(0.75), T(-1), quarter));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(an_advantage_of_zero_is_hit_as_a_negative_one, T, both) {
  BOOST_TEST(!is_hit_default(T(0.75), T(0), quarter));
  BOOST_TEST(is_hit_default(T(-0.75), T(0), quarter));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(ipo_is_hit_beyond_its_threshold_on_either_side, T, both) {
  BOOST_TEST(!is_hit_ipo(T(0.125), quarter));
  BOOST_TEST(!is_hit_ipo(T(-0.125), quarter));
  BOOST_TEST(is_hit_ipo(above(T(0.125)), quarter));
  BOOST_TEST(is_hit_ipo(below(T(-0.125)), quarter));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(ref_kl_is_hit_below_minus_a_fifth_only, T, both) {
  BOOST_TEST(!is_hit_ref_kl(T(-0.2)));
  BOOST_TEST(is_hit_ref_kl(below(T(-0.2))));
  BOOST_TEST(!is_hit_ref_kl(T(0.75)));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_token_that_is_hit_keeps_its_penalty_alone, T, both) {
  // Probabilities of 0.5 and 1: delta is -0.5.
  const loss_config config{.dppo_mask_low = 0.25, .kl_tau = 0.5};
  const T half = std::log(T(0.5));
  const auto token = rl_loss(half, T(0), T(-1), config);
  BOOST_TEST(token.hit);
  BOOST_TEST(token.term == T(0.5) * half * half);
  BOOST_TEST(token.gradient == half);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(equal_logprobs_leave_the_advantage, T, both) {
  const loss_config config{.adv_tau = 0.5};
  const auto token = rl_loss(T(-1.5), T(-1.5), T(3), config);
  BOOST_TEST(!token.hit);
  BOOST_TEST(token.term == T(-1.5));
  BOOST_TEST(token.gradient == T(-1.5));
  BOOST_TEST(token.mismatch_kl == T(0));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(ref_kl_pulls_by_the_distance_to_the_reference, T, both) {
  const auto token = ref_kl_loss(T(-1.5), T(-1.5), T(-1));
  BOOST_TEST(token.term == T(-0.5));
  BOOST_TEST(token.gradient == T(-0.5));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(ce_is_the_negative_logprob, T, both) {
  const auto token = ce_loss(T(-1.5));
  BOOST_TEST(token.term == T(1.5));
  BOOST_TEST(token.gradient == T(-1));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
} // namespace millrace::test
