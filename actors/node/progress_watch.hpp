// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "actors/node/host_messages.hpp"
#include "actors/progress_config.hpp"

namespace millrace {

/// Notices that a run does not go on. No clock: times come in.
class progress_watch {
public:
  using time_point = std::chrono::steady_clock::time_point;

  progress_watch(const progress_config &config, time_point now);

  struct alarm {
    std::uint64_t steps = 0;         ///< trained
    std::chrono::milliseconds still; ///< nothing moved for so long
    bool stop = false;               ///< the run is to be stopped
  };

  /// @param steps trained so far.
  /// @returns an alarm once per limit without another step.
  std::optional<alarm> look(time_point now, std::uint64_t steps);

private:
  progress_config config_;
  std::uint64_t steps_ = 0;
  time_point moved_; ///< when steps_ was reached
  time_point next_;  ///< of the next alarm
};

/// The line to print: for how long, since which step, why, and what comes of it.
std::string no_progress_line(const progress_watch::alarm &alarm, const status_answer &answer);

} // namespace millrace
