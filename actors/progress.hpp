// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <iosfwd>
#include <string>

#include "actors/run_counters.hpp"

namespace millrace {

/// Shows a person how a run goes: on a terminal one line that is rewritten, elsewhere a plain line
/// now and then. Not thread-safe: the supervisor's thread alone prints.
class progress {
public:
  progress(std::ostream &out, bool is_terminal, const run_counters &counters);

  /// Prints the state if it is time to.
  void tick();
  /// Prints a line that stays.
  void line(const std::string &text);
  /// Removes the rewritten line.
  void clear();

private:
  using clock = std::chrono::steady_clock;

  std::string state();

  std::ostream &out_;
  const bool is_terminal_;
  const run_counters &counters_;
  clock::time_point last_;
  std::uint64_t last_tokens_ = 0;
  bool drawn_ = false;
};

} // namespace millrace
