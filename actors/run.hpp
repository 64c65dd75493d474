// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <iosfwd>

#include "actors/run_config.hpp"
#include "actors/run_summary.hpp"
#include "runtime/result.hpp"

namespace millrace {

/// What one start of a run is told beside its config.
struct run_options {
  std::uint64_t max_steps = 0;     ///< stop after so many steps; 0: when data ends
  std::filesystem::path dump;      ///< folder for the tensors of every micro batch; empty: none
  bool allow_damage = false;       ///< damage in the recording is no failure
  std::uint64_t schedule_seed = 0; ///< not 0: perturb the order of events, for tests
};

/// Runs all stages in this process until data ends, max_steps are trained, or SIGINT or SIGTERM
/// comes; then shuts them down in order, sources first. Progress goes to `out`: a line that is
/// rewritten on a terminal, plain lines elsewhere. Errors: what kept it from starting (source,
/// state folder), or the actor that failed and why. A run that ended but does not balance is a
/// summary with balanced = false. Ends the process with exit code 1, and names who is left, if
/// actors do not end in time.
result<run_summary> run_pipeline(const run_config &config, const run_options &options,
                                 std::ostream &out);

} // namespace millrace
