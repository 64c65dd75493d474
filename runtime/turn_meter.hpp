// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

namespace millrace {

/// Times the turns of all actors of a process: CAF's scheduler is cooperative, so a handler that
/// computes for long delays everyone on its thread. Thread: any.
class turn_meter {
public:
  using clock = std::chrono::steady_clock;
  /// Longest that a handler should take.
  static constexpr std::chrono::milliseconds limit{10};

  struct summary {
    std::uint64_t long_turns = 0; ///< turns over the limit
    clock::duration longest{0};
    std::string longest_actor;
  };

  /// One run of a handler, from construction to destruction.
  class turn {
  public:
    turn(turn_meter &meter, std::string_view actor) : meter_(meter), actor_(actor) {}
    turn(const turn &) = delete;
    turn &operator=(const turn &) = delete;
    ~turn() { meter_.ended(actor_, clock::now() - start_); }

  private:
    turn_meter &meter_;
    std::string_view actor_;
    clock::time_point start_ = clock::now();
  };

  summary report() const;

private:
  void ended(std::string_view actor, clock::duration took);

  mutable std::mutex mutex_;
  summary summary_;
};

} // namespace millrace
