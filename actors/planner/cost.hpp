// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "actors/planner/plan_config.hpp"

namespace millrace {

/// Costs and their sums pass 64 bits: tokens squared times coefficients of a model.
__extension__ typedef unsigned __int128 cost_t; // an alias declaration takes no __extension__

/// What a sum of costs may come to at most: four times it still fits.
inline constexpr cost_t most_cost = (cost_t{1} << 126) - 1;

/// The cost of one sequence. Precondition: coefficients are not negative, and the lengths of a
/// micro batch sum to less than 2^31: then its cost stays below 2^63 * 2^31 + 2^63 * 2^62 <
/// most_cost.
inline cost_t cost_of(std::uint64_t length, const cost_config &config) noexcept {
  const cost_t n = length;
  return static_cast<cost_t>(config.linear) * n + static_cast<cost_t>(config.quadratic) * n * n;
}

} // namespace millrace
