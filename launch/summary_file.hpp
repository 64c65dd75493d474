// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "actors/run_config.hpp"
#include "actors/run_summary.hpp"
#include "runtime/output_file.hpp"

namespace millrace {

/// Prints the summary of a run, writes it for programs if `json` is there, and complains if the run
/// is no success. @returns the exit code.
int finish_run(const run_summary &summary, const run_config &config,
               std::optional<output_file> json);

} // namespace millrace
