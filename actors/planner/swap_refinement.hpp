// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "actors/planner/partition.hpp"

namespace millrace {

/// Exchanges items between two parts, one pair at a time: always the exchange with the smallest
/// (largest load, largest minus smallest load), on ties the first in the order (left part, right
/// part, position in left, position in right), until none makes that smaller. An item takes the
/// other's position; parts are not sorted again. Each exchange takes O(N log N + k^2), not the
/// O(N^2) of trying all. Source: docs/algorithms.md, "Partition".
/// Precondition: `in` holds indices of `weights`, each once, and their sum is at most most_cost.
void refine(std::span<const cost_t> weights, partitioning &in);

} // namespace millrace
