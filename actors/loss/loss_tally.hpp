// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "actors/loss/loss_config.hpp"

namespace millrace {

/// What one component of the loss did on some tokens, as sums: those of sequences, micro batches or
/// ranks add up, and metrics are made of the total. A field that the component lacks stays 0.
struct loss_tally {
  std::uint64_t tokens = 0;
  std::uint64_t hit = 0;      ///< rl, ref_kl: tokens that were let go
  std::uint64_t hit_high = 0; ///< rl: those with a positive advantage
  std::uint64_t hit_low = 0;  ///< rl: those with a negative one
  double hit_kl = 0;          ///< rl, ref_kl: mismatch_kl of the hit tokens
  double kept_kl = 0;         ///< rl, ref_kl: mismatch_kl of the others
  double shortfall = 0;       ///< by how much t misses its target: ce: 0 - t; ref_kl: r - t
  double loss = 0;            ///< weight * term, before the scale

  bool operator==(const loss_tally &) const = default;
  loss_tally &operator+=(const loss_tally &other) noexcept;
};

/// By component; nothing where it did not run.
struct component_tallies {
  std::optional<loss_tally> rl;
  std::optional<loss_tally> ce;
  std::optional<loss_tally> ref_kl;

  bool operator==(const component_tallies &) const = default;
  component_tallies &operator+=(const component_tallies &other) noexcept;
};

struct loss_metric {
  std::string_view name; ///< "is_masked", "ref_kl/is_masked", "nll"
  double value;
};

/// The metrics of the components that ran: means over their tokens, unweighted; 0 over nothing.
/// Source: docs/losses.md, "Metrics".
std::vector<loss_metric> metrics_of(const component_tallies &tallies, rl_kind rl);

} // namespace millrace
