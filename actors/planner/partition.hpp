// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "actors/planner/cost.hpp"
#include "runtime/result.hpp"

namespace millrace {

/// Indices of the weights in each part.
using partitioning = std::vector<std::vector<std::size_t>>;

/// The largest differencing method with equal cardinality: N weights into k parts of N / k items,
/// each part's indices ascending. O(N log N). Source: Karmarkar and Karp 1982; docs/algorithms.md,
/// "Partition".
/// Errors: bad_argument if k is 0 or does not divide N; too_large if the weights sum to more than
/// most_cost.
result<partitioning> difference(std::span<const cost_t> weights, std::size_t k);

/// difference(), then refine() of swap_refinement.hpp. Errors: as for difference().
result<partitioning> partition(std::span<const cost_t> weights, std::size_t k);

} // namespace millrace
