// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "actors/planner/first_fit.hpp"

namespace millrace {

/// Splits bins until their number is a multiple of `ranks`, so that fewer dummies are needed. Among
/// bins of two or more pieces without images the one of highest cost is split, on a tie the last;
/// its pieces, costliest first, go to the side of lower load. The left side stays in place, the
/// right one goes to the end. Stops early if no bin can be split. With one rank nothing is split.
void split(std::vector<open_bin> &bins, std::size_t ranks, const cost_config &cost);

} // namespace millrace
