// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "actors/loss/loss_config.hpp"
#include "actors/trainer/component_totals.hpp"
#include "actors/trainer/step_metrics.hpp"
#include "schema/log_records.hpp"

namespace millrace {

/// What a line of metrics says beside the metrics.
struct metrics_place {
  std::string run{};
  std::uint64_t generation = 0; ///< of the trainer job
  std::uint64_t step = 0;
  std::int32_t ranks = 1;
  component_totals totals{};
  std::span<const staleness_count> staleness{};
  rl_kind rl = rl_kind::standard;
};

/// One step as one line of JSON, with the line end. What is not finite is null, and stands in
/// "non_finite" by name. Source: docs/formats.md, "Metrics".
std::string metrics_line(const metrics_place &place, const step_metrics &metrics);

/// Adds a line to a file; makes it if there is none. Errors: io, no_space.
status append_line(const std::filesystem::path &path, std::string_view line);

} // namespace millrace
