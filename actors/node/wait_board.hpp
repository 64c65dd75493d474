// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "actors/node/host_messages.hpp"

namespace millrace {

/// What the actors of a process wait for: one wait for each actor at a time. Actors write it from
/// their pump, the process sends it with its status. Thread: any.
class wait_board {
public:
  using clock = std::chrono::steady_clock;

  /// `who` waits. The wait is the one that `topic` names ("step 12"): the same topic again goes on
  /// waiting, and only changes what is shown; another one begins now. Costs a lock and three
  /// comparisons when nothing changes.
  /// @param what for people, after "waits for": "step 12"; a text that begins with "has " stands
  ///   by itself: "has 127/128 traces of step 12".
  /// @param on the actor that must do something, or a role; empty: the world.
  void set(std::string_view who, std::string_view topic, std::string_view what, std::string_view on,
           clock::time_point now = clock::now());

  /// `who` is at work, or has ended.
  void clear(std::string_view who);

  /// By name of the actor.
  std::vector<wait_entry> snapshot(clock::time_point now = clock::now()) const;

private:
  struct wait {
    std::string topic;
    std::string what;
    std::string on;
    clock::time_point since;
  };

  mutable std::mutex mutex_;
  std::map<std::string, wait, std::less<>> waits_; ///< by actor
};

} // namespace millrace
