// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

#include "actors/loss/loss_config.hpp"
#include "runtime/device_fn.hpp"

namespace millrace {

// The loss of one token, for T = float or double, on host and device alike. Source: docs/losses.md.
// None of them asks whether the token belongs to a component: who calls one has asked.

/// How far the trainer's logprob t is from q, the one at sampling.
template <class T> struct token_ratio {
  T log_ratio;   ///< d = t - q
  T ratio;       ///< exp(d)
  T prob_delta;  ///< exp(t) - exp(q)
  T mismatch_kl; ///< ratio - d - 1
};

template <class T> MILLRACE_DEVICE_FN token_ratio<T> ratio_of(T trainer, T inference) {
  const T log_ratio = trainer - inference;
  const T ratio = std::exp(log_ratio);
  return {log_ratio, ratio, std::exp(trainer) - std::exp(inference), ratio - log_ratio - T{1}};
}

/// What a token is to its component.
template <class T> struct token_loss {
  T term;        ///< before its weight and the scale
  T gradient;    ///< d term / d t
  T mismatch_kl; ///< 0 for ce
  bool hit;      ///< only the penalty is left of it; false for ce
};

// Whether a token is let go. At a threshold itself it is not.

template <class T>
MILLRACE_DEVICE_FN bool is_hit_default(T prob_delta, T advantage, const loss_config &config) {
  return advantage > T{0} ? prob_delta > static_cast<T>(config.dppo_mask_high)
                          : prob_delta < -static_cast<T>(config.dppo_mask_low);
}

template <class T> MILLRACE_DEVICE_FN bool is_hit_ipo(T prob_delta, const loss_config &config) {
  return std::abs(prob_delta) > static_cast<T>(config.ipo_threshold);
}

template <class T> MILLRACE_DEVICE_FN bool is_hit_ref_kl(T prob_delta) {
  return prob_delta < -static_cast<T>(ref_kl_mask_low);
}

/// -(hit ? 0 : pull * ratio) + tau * d * d, where hit and pull are constants for the gradient.
template <class T>
MILLRACE_DEVICE_FN token_loss<T> pulled(const token_ratio<T> &from, T pull, T tau, bool hit) {
  const T gain = hit ? T{0} : pull * from.ratio;
  return {tau * from.log_ratio * from.log_ratio - gain, T{2} * tau * from.log_ratio - gain,
          from.mismatch_kl, hit};
}

template <class T>
MILLRACE_DEVICE_FN token_loss<T> rl_loss(T trainer, T inference, T advantage,
                                         const loss_config &config) {
  const auto from = ratio_of(trainer, inference);
  const bool hit = config.rl == rl_kind::ipo ? is_hit_ipo(from.prob_delta, config)
                                             : is_hit_default(from.prob_delta, advantage, config);
  return pulled(from, static_cast<T>(config.adv_tau) * advantage, static_cast<T>(config.kl_tau),
                hit);
}

template <class T>
MILLRACE_DEVICE_FN token_loss<T> ref_kl_loss(T trainer, T inference, T reference) {
  const auto from = ratio_of(trainer, inference);
  return pulled(from, reference - trainer, static_cast<T>(ref_kl_tau),
                is_hit_ref_kl(from.prob_delta));
}

template <class T> MILLRACE_DEVICE_FN token_loss<T> ce_loss(T trainer) {
  return {-trainer, T{-1}, T{0}, false};
}

} // namespace millrace
