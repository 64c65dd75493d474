// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "actors/loss/loss.hpp"

namespace millrace::test {

using floats = std::vector<float>;

/// Two sequences of 3 and 2 tokens, all of them trained by rl; each test changes what it is about.
struct sample_columns {
  std::vector<std::int64_t> sequence_lengths{3, 2};
  std::vector<std::uint8_t> loss_mask{1, 1, 1, 1, 1};
  std::vector<double> trainer_logprobs{-0.5, -1.25, -2.0, -0.75, -1.5};
  floats advantages{1.0F, -0.5F, 2.0F, -1.0F, 0.5F};
  floats inference_logprobs{-0.625F, -1.0F, -2.25F, -0.5F, -1.5F};
  std::optional<floats> ref_logprobs;
  std::optional<floats> rl_weights;
  std::optional<floats> ce_weights;
  std::optional<floats> ref_kl_weights;
  loss_config config;
  loss_scales scales{.rl = 5, .ce = 4, .ref_kl = 3};

  loss_columns columns() const {
    return {.sequence_lengths = sequence_lengths,
            .loss_mask = loss_mask,
            .advantages = advantages,
            .inference_logprobs = inference_logprobs,
            .ref_logprobs = ref_logprobs,
            .rl_weights = rl_weights,
            .ce_weights = ce_weights,
            .ref_kl_weights = ref_kl_weights};
  }

  template <class T = double> result<loss_result<T>> try_loss() const {
    const std::vector<T> trainer(trainer_logprobs.begin(), trainer_logprobs.end());
    return compute_loss<T>(columns(), trainer, config, scales);
  }
  template <class T = double> loss_result<T> loss() const {
    auto out = try_loss<T>();
    BOOST_REQUIRE_MESSAGE(out, out.error().message);
    return std::move(*out);
  }
  /// Why it is refused.
  std::string refusal() const {
    const auto out = try_loss();
    BOOST_TEST_REQUIRE(!out.has_value());
    BOOST_TEST((out.error().code == errc::bad_value));
    return out.error().message;
  }
};

} // namespace millrace::test
