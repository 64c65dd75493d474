// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "actors/planner/partition.hpp"
#include "actors/planner/plan.hpp"

namespace millrace::naive {

/// The rules of tests/golden/README.md word by word, as slow as that is. Models for the tests.

using millrace::partitioning;

partitioning difference(std::span<const cost_t> weights, std::size_t k);
partitioning refine(std::span<const cost_t> weights, partitioning in);

/// Tokens and images kept; nothing for a sample that is rejected.
std::optional<planned_piece> cut(const sample_shape &sample, std::uint32_t seq_len);

/// Precondition: the config validates.
step_plan plan_step(std::span<const sample_shape> samples, const plan_config &config);

} // namespace millrace::naive
