// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace millrace {

/// Which tokens the rl term lets go: those whose probability moved too far.
enum class rl_kind : std::uint8_t {
  standard, ///< "default": on the side that the advantage pushes to
  ipo,      ///< "ipo": on either side
};

/// The constants of the rl term. All are finite and at least 0.
struct loss_config {
  rl_kind rl = rl_kind::standard;
  /// default: how far the probability of a token whose advantage is not positive may have fallen.
  /// Unit: probability. Smaller: fewer tokens train, and the policy stays nearer to what sampled.
  double dppo_mask_low = 0.2;
  /// default: how far that of a token with a positive advantage may have risen. Unit: probability.
  double dppo_mask_high = 0.2;
  /// ipo: how far a probability may have moved. Unit: probability.
  double ipo_threshold = 0.1;
  /// Factor of the advantages. Larger: they count more against kl_tau.
  double adv_tau = 1.0;
  /// Factor of the squared log ratio, on all tokens of rl. Larger: the policy is held nearer.
  double kl_tau = 0.001;
};

/// ref_kl has fixed ones.
inline constexpr double ref_kl_mask_low = 0.2;
inline constexpr double ref_kl_tau = 0.001;

} // namespace millrace
