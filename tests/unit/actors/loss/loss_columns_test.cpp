// SPDX-License-Identifier: Apache-2.0
#include "actors/loss/loss_columns.hpp"

#include <limits>

#include "tests/unit/actors/loss/sample_columns.hpp"

namespace millrace::test {
namespace {

BOOST_AUTO_TEST_SUITE(loss_columns_suite)

BOOST_AUTO_TEST_CASE(a_column_of_another_length_is_refused_by_name) {
  const auto refusal = [](auto change) {
    sample_columns in;
    change(in);
    return in.refusal();
  };
  const floats four(4, 0.0F);
  BOOST_TEST(refusal([](auto &in) { in.loss_mask.pop_back(); }) ==
             "loss_mask has 4 values for 5 tokens");
  BOOST_TEST(refusal([](auto &in) { in.advantages.push_back(0); }) ==
             "advantages has 6 values for 5 tokens");
  BOOST_TEST(refusal([](auto &in) { in.inference_logprobs.clear(); }) ==
             "inference_logprobs has 0 values for 5 tokens");
  BOOST_TEST(refusal([&](auto &in) { in.ref_logprobs = four; }) ==
             "ref_logprobs has 4 values for 5 tokens");
  BOOST_TEST(refusal([&](auto &in) { in.rl_weights = four; }) ==
             "rl_weights has 4 values for 5 tokens");
  BOOST_TEST(refusal([&](auto &in) { in.ce_weights = four; }) ==
             "ce_weights has 4 values for 5 tokens");
  BOOST_TEST(refusal([&](auto &in) { in.ref_kl_weights = four; }) ==
             "ref_kl_weights has 4 values for 5 tokens");
}

BOOST_AUTO_TEST_CASE(sequence_lengths_must_sum_to_the_tokens) {
  sample_columns in;
  in.sequence_lengths = {3, 1};
  BOOST_TEST(in.refusal() == "the sequence lengths leave 1 of 5 tokens over");
  in.sequence_lengths = {3, 3};
  BOOST_TEST(in.refusal() == "sequence 1 has 3 tokens, where 2 of 5 are left");
}

BOOST_AUTO_TEST_CASE(lengths_that_are_negative_or_wrap_around_are_refused) {
  constexpr auto most = std::numeric_limits<std::int64_t>::max();
  sample_columns in;
  in.sequence_lengths = {6, -1};
  BOOST_TEST(!in.refusal().empty());
  in.sequence_lengths = {-1, 6};
  BOOST_TEST(!in.refusal().empty());
  in.sequence_lengths = {most, most, 7};
  BOOST_TEST(!in.refusal().empty());
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
} // namespace millrace::test
