// SPDX-License-Identifier: Apache-2.0
#include "runtime/signals.hpp"

#include <ctime>

namespace millrace {

signal_guard::signal_guard() {
  sigemptyset(&watched_);
  sigaddset(&watched_, SIGINT);
  sigaddset(&watched_, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &watched_, &before_);
}

signal_guard::~signal_guard() {
  while (take() != 0) {
  }
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

int signal_guard::take() {
  const timespec no_wait{0, 0};
  const int number = sigtimedwait(&watched_, nullptr, &no_wait);
  return number > 0 ? number : 0;
}

} // namespace millrace
