// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "actors/planner/plan.hpp"
#include "schema/body.hpp"

namespace millrace {

/// What the planner looks at of a sample, from the header of its branch.
sample_shape shape_of(const wire::BranchHeader &branch);

} // namespace millrace
