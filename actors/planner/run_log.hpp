// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "actors/planner/run_history.hpp"
#include "schema/planner_log.hpp"

namespace millrace {

/// What a state folder belongs to.
struct run_identity {
  std::string run;           ///< run.id
  std::string source;        ///< what is read, as the config names it
  std::string program;       ///< version
  std::string config_digest; ///< of the settings that all processes share, hex
  std::uint32_t ranks = 1;
  std::string settings = {}; ///< those, a line "key = value" for each
};

/// The planner's log and what it says. Thread: one at a time.
class run_log {
public:
  /// Opens STATE/planner.log, or makes it, and appends this start, synced; then STATE/config.toml
  /// has its settings.
  /// Errors: conflict (another process has it), damaged, unsupported, io, no_space; bad_argument if
  /// the folder is of another run, source or number of ranks, or if a setting has changed that what
  /// the log says depends on.
  static result<std::unique_ptr<run_log>> open(const std::filesystem::path &state,
                                               const run_identity &who, step_keep keep, bool sync);

  /// Appends and applies. After no_space nothing has changed: it can be tried again.
  /// Errors: no_space, io.
  status write(const log_record &record);
  /// What was written is on the disk. Errors: io, for good.
  status sync();
  bool synced() const noexcept { return synced_; }

  const run_history &history() const noexcept { return history_; }
  run_history &history() noexcept { return history_; }
  /// A start that found earlier steps.
  bool resumed() const noexcept { return resumed_; }

private:
  run_log(planner_log file, run_history history)
      : file_(std::move(file)), history_(std::move(history)) {}

  planner_log file_;
  run_history history_;
  bool resumed_ = false;
  bool synced_ = true;
};

} // namespace millrace
