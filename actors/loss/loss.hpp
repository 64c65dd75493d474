// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "actors/loss/loss_columns.hpp"
#include "actors/loss/loss_tally.hpp"

namespace millrace {

/// What each component is divided by: its tokens in all micro batches of all ranks of the step. 0
/// where no rank has one. Unit: tokens.
struct loss_scales {
  std::uint64_t rl = 0;
  std::uint64_t ce = 0;
  std::uint64_t ref_kl = 0;
};

/// A result that holds infinities or NaNs, for who reports it.
struct non_finite {
  std::string_view name; ///< "loss", "grad_trainer_logprobs", or that of a metric
  std::size_t count;     ///< of values
  std::size_t first;     ///< its token (gradient) or sequence (metric); 0 for the loss

  bool operator==(const non_finite &) const = default;
};

/// The loss of one micro batch. Those of all micro batches and ranks add up to the step's.
template <class T> struct loss_result {
  T loss = 0;
  std::vector<T> grad_trainer_logprobs;     ///< [N], d loss / d t; 0 on tokens of no component
  std::vector<component_tallies> sequences; ///< [S]
  component_tallies total;                  ///< over the sequences
  std::vector<non_finite> non_finites;      ///< empty if all is well
};

/// Values and gradient of the three components. A token outside a component is not computed there,
/// so whatever stands at it cannot enter. Tokens in order, so the same input gives the same bits.
///
/// T = float computes each token in float32, and T = double in float64; sums are taken in double
/// for both and rounded once at the end, so float32 needs no order or tree of its own.
///
/// Unit: nats for logprobs and loss. Thread: any. Source: docs/losses.md.
/// Errors: bad_value, with the place: columns of another length than trainer_logprobs; constants
/// below 0; a token of ref_kl without ref_logprobs; a scale of 0 for a component that has tokens.
template <class T>
result<loss_result<T>> compute_loss(const loss_columns &columns,
                                    std::span<const T> trainer_logprobs, const loss_config &config,
                                    const loss_scales &scales);

extern template result<loss_result<float>> compute_loss(const loss_columns &,
                                                        std::span<const float>, const loss_config &,
                                                        const loss_scales &);
extern template result<loss_result<double>> compute_loss(const loss_columns &,
                                                         std::span<const double>,
                                                         const loss_config &, const loss_scales &);

} // namespace millrace
