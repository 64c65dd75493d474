// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstddef>

#include "runtime/device_fn.hpp"

namespace millrace {

// A bigram language model: one row of logits for each token that came before, a softmax over the
// row. On host and device alike. Unit: nats.

/// A row of logits at a temperature, as far as all its probabilities need it.
struct bigram_row {
  const double *logits;
  std::size_t vocab_size;
  double temperature;
  double largest;     ///< of logits / temperature
  double log_sum_exp; ///< of logits / temperature
};

MILLRACE_DEVICE_FN inline bigram_row row_of(const double *logits, std::size_t vocab_size,
                                            double temperature) {
  bigram_row out{logits, vocab_size, temperature, logits[0] / temperature, 0};
  for (std::size_t k = 1; k < vocab_size; ++k)
    out.largest = std::fmax(out.largest, logits[k] / temperature);
  double sum = 0;
  for (std::size_t k = 0; k < vocab_size; ++k)
    sum += std::exp(logits[k] / temperature - out.largest);
  out.log_sum_exp = out.largest + std::log(sum);
  return out;
}

MILLRACE_DEVICE_FN inline double logprob_of(const bigram_row &row, std::size_t token) {
  return row.logits[token] / row.temperature - row.log_sum_exp;
}

/// Of the distribution that the row stands for.
MILLRACE_DEVICE_FN inline double entropy_of(const bigram_row &row) {
  double sum = 0;
  for (std::size_t k = 0; k < row.vocab_size; ++k) {
    const double logprob = logprob_of(row, k);
    sum -= std::exp(logprob) * logprob;
  }
  return sum;
}

/// d logprob_of(row, token) / d logits[k].
MILLRACE_DEVICE_FN inline double slope_of(const bigram_row &row, std::size_t token, std::size_t k) {
  return ((k == token ? 1.0 : 0.0) - std::exp(logprob_of(row, k))) / row.temperature;
}

} // namespace millrace
