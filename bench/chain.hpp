// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>

#include "bench/load.hpp"

namespace millrace::bench {

/// Nodes in a row, each joined to the next by a connection: the first sends, the last lets go of
/// what arrives, those between pass it on as it came.
class chain {
public:
  virtual ~chain() = default;
  /// Sends all messages and returns when the last one has arrived.
  virtual void run(const load &what) = 0;
};

/// Messages that arrived at the end of a chain. Thread: one counts, one waits.
class arrival_count {
public:
  void add() noexcept {
    if (left_.fetch_sub(1) == 1)
      left_.notify_one();
  }
  void expect(std::size_t count) noexcept { left_.store(static_cast<std::ptrdiff_t>(count)); }
  void wait() const noexcept {
    for (auto left = left_.load(); left > 0; left = left_.load())
      left_.wait(left);
  }

private:
  std::atomic<std::ptrdiff_t> left_{0};
};

} // namespace millrace::bench
