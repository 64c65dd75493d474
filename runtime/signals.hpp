// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <csignal>

namespace millrace {

/// Holds SIGINT and SIGTERM back from all threads that are started while it lives, so that one
/// thread can ask for them. Make it before any thread.
class signal_guard {
public:
  signal_guard();
  ~signal_guard();
  signal_guard(const signal_guard &) = delete;
  signal_guard &operator=(const signal_guard &) = delete;

  /// The number of a signal that has come, or 0. Does not wait.
  int take();

private:
  sigset_t watched_;
  sigset_t before_;
};

} // namespace millrace
