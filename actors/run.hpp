// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "actors/pipeline.hpp"
#include "actors/run_config.hpp"
#include "actors/run_summary.hpp"
#include "runtime/result.hpp"

namespace millrace {

/// What one start of a run is told beside its config.
struct run_options {
  std::uint64_t max_steps = 0;     ///< stop after so many steps; 0: when data ends
  std::filesystem::path dump;      ///< folder for tensors and parameters; empty: none
  std::filesystem::path exports;   ///< folder for annotated tokens; empty: none
  bool allow_damage = false;       ///< damage in the recording is no failure
  std::uint64_t schedule_seed = 0; ///< not 0: perturb the order of events, for tests
};

/// What a process of a run is: which actors it holds, and how others know it.
struct process_options {
  std::string name; ///< one per run; that of its first actor, "directory" if it holds that
  std::vector<actor_spec> actors;
  bool directory = false; ///< it holds the directory
  /// It is the whole run: its only socket is one for tools, in the state folder.
  bool alone = false;
  std::string config_digest;           ///< what all processes must agree on, hex
  std::string settings;                ///< the same as text, a line "key = value" for each
  std::string program;                 ///< version
  std::filesystem::path endpoint_file; ///< gets the endpoint, once bound; empty: none
};

/// Runs the actors of one process until the run is over: data ends, max_steps are trained, or
/// SIGINT or SIGTERM comes; then they are shut down in order, sources first. Progress goes to
/// `out`: a line that is rewritten on a terminal, plain lines elsewhere. A run that ended but does
/// not balance is a summary with balanced = false. The process that holds the planner prints steps,
/// ends all others in the order of the data, and has the summary; the others end when it says so,
/// when they are drained, or when somebody is gone without whom the run cannot go on. Errors: what
/// kept it from starting (source, state folder, sockets), or what ended the run. Ends the process
/// with exit code 1, and names who is left, if actors do not end in time.
result<std::optional<run_summary>> run_process(const run_config &config,
                                               const process_options &process,
                                               const run_options &options, std::ostream &out);

/// All stages of a run in one process. config_digest, settings and program are the caller's to fill
/// in.
process_options whole_run(const run_config &config);

} // namespace millrace
