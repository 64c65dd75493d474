// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "actors/planner/ready_group.hpp"

namespace millrace {

/// A place in the samples of a step's groups.
struct sample_place {
  std::uint32_t group = 0;  ///< index into the step's groups
  std::uint32_t sample = 0; ///< index into ready_group::samples
};

/// The micro batches of one step, before they are gathered.
struct step_bins {
  step_plan plan;
  std::vector<sample_place> places; ///< by sample index of the plan
};

/// Plans the kept samples of these groups as one step, and enters into each sample what became of
/// it. Errors: those of plan_step and check_plan.
result<step_bins> plan_groups(std::span<ready_group *const> groups, const plan_config &config);

/// The BinPlan body of one micro batch, and which groups it draws on: indices into `groups`, in the
/// order of BinPlan.groups.
struct encoded_bin {
  frame plan;
  std::vector<std::uint32_t> groups;
  std::uint64_t source_bytes = 0; ///< of the sealed episodes that it draws on
};
encoded_bin encode_bin(const step_bins &bins, std::span<const ready_group *const> groups,
                       std::uint64_t step, std::uint32_t rank, std::uint32_t index);

} // namespace millrace
