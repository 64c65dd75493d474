// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "actors/interfaces.hpp"
#include "actors/run_counters.hpp"
#include "runtime/json_out.hpp"
#include "runtime/turn_meter.hpp"

namespace millrace {

/// A process's part of the run's summary: sent as JSON to the planner's process when its actors
/// have ended.
struct run_report {
  std::string process;
  std::shared_ptr<run_counters> counters = std::make_shared<run_counters>();
  turn_meter::summary turns;
  std::uint64_t peak_rss_bytes = 0;
  std::string quarantine;             ///< path of the quarantine file; empty if nothing was refused
  std::vector<source_report> sources; ///< of its env readers
};

json::tree to_json(const run_report &report);

/// Errors: bad_format, bad_value, with the name of the field.
result<run_report> run_report_from_json(std::string_view text);

/// Adds the numbers of `one` to `sum`: the longest turn is the longest of both, sources are joined,
/// paths of quarantine files are joined by ", ".
void add(run_report &sum, const run_report &one);

} // namespace millrace
