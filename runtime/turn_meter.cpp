// SPDX-License-Identifier: Apache-2.0
#include "runtime/turn_meter.hpp"

namespace millrace {

void turn_meter::ended(std::string_view actor, clock::duration took) {
  if (took <= limit)
    return;
  const std::lock_guard lock(mutex_);
  ++summary_.long_turns;
  if (took > summary_.longest) {
    summary_.longest = took;
    summary_.longest_actor = actor;
  }
}

turn_meter::summary turn_meter::report() const {
  const std::lock_guard lock(mutex_);
  return summary_;
}

} // namespace millrace
