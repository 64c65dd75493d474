// SPDX-License-Identifier: Apache-2.0
#include "actors/loss/loss.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "actors/loss/token_loss.hpp"
#include "tests/unit/actors/loss/sample_columns.hpp"

namespace millrace::test {
namespace {

using both = std::tuple<float, double>;
constexpr auto infinity = std::numeric_limits<float>::infinity();
constexpr auto nan = std::numeric_limits<float>::quiet_NaN();

/// Every component on, weights of both signs, thresholds on both sides of several tokens.
struct mixed_columns : sample_columns {
  mixed_columns() {
    ref_logprobs = floats{-0.25F, -1.0F, -3.0F, -1.5F, -0.5F};
    rl_weights = floats{1.0F, -0.5F, 0.0F, 2.0F, 0.25F};
    ce_weights = floats{0.0F, 0.5F, 1.0F, 0.0F, -0.25F};
    ref_kl_weights = floats{0.5F, 0.0F, 1.0F, 0.75F, -0.5F};
    config.kl_tau = 0.25;
    config.dppo_mask_low = 0.1;
  }
};

/// d loss / d t of a token by finite differences. Moving t by so little crosses no threshold.
double slope(const sample_columns &in, std::size_t token) {
  constexpr double step = 1e-4;
  const auto moved = [&in, token](double by) {
    auto other = in;
    other.trainer_logprobs[token] += by;
    return other.loss().loss;
  };
  return (moved(step) - moved(-step)) / (2 * step);
}

template <class T> bool all_zero(const std::vector<T> &values) {
  return std::all_of(values.begin(), values.end(), [](T value) { return value == 0; });
}

BOOST_AUTO_TEST_SUITE(loss_suite)

BOOST_AUTO_TEST_CASE(the_gradient_of_rl_and_ce_is_the_slope_of_the_loss) {
  for (const auto kind : {rl_kind::standard, rl_kind::ipo}) {
    mixed_columns in;
    in.ref_kl_weights.reset();
    in.config.rl = kind;
    const auto gradient = in.loss().grad_trainer_logprobs;
    for (std::size_t i = 0; i < gradient.size(); ++i)
      BOOST_TEST(std::abs(gradient[i] - slope(in, i)) < 1e-7, "token " << i);
  }
}

BOOST_AUTO_TEST_CASE(the_gradient_of_ref_kl_is_the_slope_with_the_pull_held) {
  mixed_columns in;
  in.rl_weights = floats(5, 0.0F);
  in.ce_weights.reset();
  const auto gradient = in.loss().grad_trainer_logprobs;
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    // A moving pull adds weight * ratio / scale to the slope of a token that is not hit.
    const auto t = in.trainer_logprobs[i];
    const auto q = static_cast<double>(in.inference_logprobs[i]);
    const bool hit = std::exp(t) - std::exp(q) < -0.2;
    const auto moving =
        hit ? 0 : static_cast<double>((*in.ref_kl_weights)[i]) * std::exp(t - q) / 3;
    BOOST_TEST(std::abs(gradient[i] + moving - slope(in, i)) < 1e-7, "token " << i);
  }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(each_component_is_divided_by_its_own_scale, T, both) {
  mixed_columns in;
  const auto once = in.loss<T>();
  in.scales = {.rl = 50, .ce = 400, .ref_kl = 3000};
  const auto wide = in.loss<T>();
  const auto share = [](const std::optional<loss_tally> &tally, double scale) {
    return tally->loss / scale;
  };
  BOOST_TEST(std::abs(static_cast<double>(wide.loss) - share(once.total.rl, 50) -
                      share(once.total.ce, 400) - share(once.total.ref_kl, 3000)) < 1e-6);
}

BOOST_AUTO_TEST_CASE(micro_batches_add_up_to_the_whole) {
  const mixed_columns in;
  const auto cut = [&in](std::size_t begin, std::size_t end) {
    auto part = in;
    const auto keep = [begin, end](auto &column) {
      column = {column.begin() + static_cast<std::ptrdiff_t>(begin),
                column.begin() + static_cast<std::ptrdiff_t>(end)};
    };
    part.sequence_lengths = {static_cast<std::int64_t>(end - begin)};
    keep(part.loss_mask);
    keep(part.trainer_logprobs);
    keep(part.advantages);
    keep(part.inference_logprobs);
    for (auto *column :
         {&part.ref_logprobs, &part.rl_weights, &part.ce_weights, &part.ref_kl_weights})
      keep(**column);
    return part.loss().loss;
  };
  BOOST_TEST(std::abs(in.loss().loss - cut(0, 3) - cut(3, 5)) < 1e-12);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(infinities_outside_the_components_enter_nothing, T, both) {
  mixed_columns in;
  in.loss_mask = {1, 0, 1, 1, 1};
  in.ce_weights = floats{0.0F, 0.0F, 1.0F, 0.0F, 0.0F};
  in.ref_kl_weights = floats{0.0F, 0.0F, 0.0F, 0.5F, 0.0F};
  const auto clean = in.loss<T>();
  in.trainer_logprobs[1] = infinity;
  in.inference_logprobs[1] = -infinity;
  in.advantages[1] = infinity;
  in.ref_logprobs->at(1) = -infinity;
  in.rl_weights->at(1) = infinity; // outside the mask
  in.advantages[2] = infinity;     // only ce
  in.inference_logprobs[2] = -infinity;
  in.ref_logprobs->at(0) = infinity; // only rl
  const auto dirty = in.loss<T>();
  BOOST_TEST(dirty.loss == clean.loss);
  BOOST_TEST(dirty.grad_trainer_logprobs == clean.grad_trainer_logprobs);
  BOOST_TEST((dirty.sequences == clean.sequences));
  BOOST_TEST(dirty.non_finites.empty());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(no_trainable_token_is_a_loss_of_zero_not_of_nan, T, both) {
  sample_columns in;
  in.loss_mask.assign(5, 0);
  for (const auto scale : {std::uint64_t{0}, std::uint64_t{1000}}) {
    in.scales = {.rl = scale, .ce = scale, .ref_kl = scale};
    const auto out = in.loss<T>();
    BOOST_TEST(out.loss == T(0));
    BOOST_TEST(all_zero(out.grad_trainer_logprobs));
    BOOST_TEST(out.non_finites.empty());
  }
}

BOOST_AUTO_TEST_CASE(an_untrained_micro_batch_changes_nothing_in_its_step) {
  // Its denominator is that of all micro batches: the loss of the others does not move.
  sample_columns trained;
  const auto alone = trained.loss().loss;
  sample_columns untrained;
  untrained.loss_mask.assign(5, 0);
  BOOST_TEST(alone != 0);
  BOOST_TEST(alone + untrained.loss().loss == alone);
}

BOOST_AUTO_TEST_CASE(a_sequence_that_lost_its_completion_keeps_the_others_loss) {
  sample_columns in;
  in.loss_mask = {0, 0, 0, 1, 1}; // a prompt that fills its first sequence
  const auto out = in.loss();
  BOOST_TEST((out.sequences[0].rl == loss_tally{}));
  BOOST_TEST(out.sequences[1].rl->tokens == 2U);
  BOOST_TEST(std::isfinite(out.loss));
}

BOOST_AUTO_TEST_CASE(a_component_with_tokens_and_a_scale_of_zero_is_refused_by_name) {
  mixed_columns in;
  in.scales.ce = 0;
  BOOST_TEST(in.refusal().starts_with("ce has 3 tokens"));
  in.scales = {.rl = 0, .ce = 1, .ref_kl = 1};
  BOOST_TEST(in.refusal().starts_with("rl has 4 tokens"));
  in.scales = {.rl = 1, .ce = 1, .ref_kl = 0};
  BOOST_TEST(in.refusal().starts_with("ref_kl has 4 tokens"));
}

BOOST_AUTO_TEST_CASE(a_component_that_never_ran_has_no_tally) {
  sample_columns in;
  in.rl_weights = floats{0.0F, 0.0F, 0.0F, 1.0F, 1.0F};
  in.ce_weights = floats(5, 0.0F);
  const auto out = in.loss();
  BOOST_TEST(!out.sequences[0].rl.has_value());
  BOOST_TEST(out.sequences[1].rl.has_value());
  BOOST_TEST((!out.total.ce && !out.total.ref_kl));
}

BOOST_AUTO_TEST_CASE(without_a_stream_rl_runs_on_a_sequence_without_tokens) {
  sample_columns in;
  in.loss_mask = {0, 0, 0, 1, 1};
  BOOST_TEST(in.loss().sequences[0].rl.has_value());
}

BOOST_AUTO_TEST_CASE(ce_and_ref_kl_train_outside_the_mask) {
  sample_columns in;
  in.loss_mask.assign(5, 0);
  in.ref_logprobs = floats(5, -1.0F);
  in.ce_weights = floats{1.0F, 0.0F, 0.0F, 0.0F, 0.0F};
  in.ref_kl_weights = floats{0.0F, 1.0F, 0.0F, 0.0F, 0.0F};
  const auto out = in.loss();
  BOOST_TEST(out.grad_trainer_logprobs[0] == -0.25);
  BOOST_TEST(out.grad_trainer_logprobs[1] != 0);
}

BOOST_AUTO_TEST_CASE(a_ref_kl_token_without_reference_is_refused_with_its_place) {
  sample_columns in;
  in.ref_kl_weights = floats{0.0F, 0.0F, 0.0F, 0.0F, 0.5F};
  const auto why = in.refusal();
  BOOST_TEST(why.starts_with("sequence 1: token 4 (token 1 of its sequence)"), why);
}

BOOST_AUTO_TEST_CASE(a_ref_kl_stream_of_zeros_needs_no_reference) {
  sample_columns in;
  in.ref_kl_weights = floats(5, 0.0F);
  BOOST_TEST(in.try_loss().has_value());
}

BOOST_AUTO_TEST_CASE(constants_that_are_none_are_refused_by_name) {
  sample_columns in;
  in.config.kl_tau = -0.5;
  BOOST_TEST(in.refusal().starts_with("kl_tau is -0.5"));
  in.config = {.dppo_mask_high = std::nan("")};
  BOOST_TEST(in.refusal().starts_with("dppo_mask_high is nan"));
}

BOOST_AUTO_TEST_CASE(what_is_not_finite_is_named_with_count_and_place) {
  sample_columns in;
  in.advantages[1] = nan;
  in.advantages[4] = infinity;
  const std::vector<non_finite> want{{"loss", 1, 0}, {"grad_trainer_logprobs", 2, 1}};
  BOOST_TEST((in.loss().non_finites == want));
}

BOOST_AUTO_TEST_CASE(a_metric_that_is_not_finite_is_named_with_its_sequence) {
  sample_columns in;
  in.advantages.assign(5, -1.0F);
  in.inference_logprobs[3] = infinity; // the ratio is 0 and the divergence infinite
  const auto found = in.loss().non_finites;
  BOOST_TEST((std::find(found.begin(), found.end(), non_finite{"masked_mismatch_kl", 1, 1}) !=
              found.end()));
}

BOOST_AUTO_TEST_CASE(a_float_loss_that_overflows_is_named) {
  sample_columns in;
  in.trainer_logprobs[0] = -0.5;
  in.inference_logprobs[0] = -88.0F;
  in.advantages[0] = -1e6F; // a ratio of 1e38, not hit
  BOOST_TEST(in.loss<double>().non_finites.empty());
  BOOST_TEST((in.loss<float>().non_finites.at(0) == non_finite{"loss", 1, 0}));
}

BOOST_AUTO_TEST_CASE(a_long_float_sum_stays_within_a_millionth) {
  // One float32 accumulator would be off by 1e-4 and more here.
  constexpr std::size_t tokens = 300000;
  sample_columns in;
  in.sequence_lengths = {tokens};
  in.loss_mask.assign(tokens, 1);
  in.trainer_logprobs.assign(tokens, -1.1F);
  in.inference_logprobs.assign(tokens, -1.0F);
  in.advantages.assign(tokens, 0.3F);
  in.scales.rl = 1;
  const auto term = rl_loss<double>(-1.1F, -1.0F, 0.3F, in.config).term;
  const auto want = term * static_cast<double>(tokens);
  BOOST_TEST(std::abs(static_cast<double>(in.loss<float>().loss) - want) <= 1e-6 * std::abs(want));
}

BOOST_AUTO_TEST_CASE(no_tokens_are_a_loss_of_zero) {
  sample_columns in;
  in.sequence_lengths.clear();
  in.loss_mask.clear();
  in.trainer_logprobs.clear();
  in.advantages.clear();
  in.inference_logprobs.clear();
  BOOST_TEST(in.loss().loss == 0);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
} // namespace millrace::test
