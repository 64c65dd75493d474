// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "actors/node/host_messages.hpp"

namespace millrace::test {

/// A process of one actor that has its name, 100 s old, with news from 200 ms ago.
inline status_line process_of(const std::string &name, role what,
                              std::vector<wait_entry> waits = {}) {
  status_line line;
  line.entry = {name, 1, "tcp://10.0.0.1:7000", "", {{what, name}}, process_state::alive};
  line.status.host = "node1";
  line.status.pid = 4121;
  line.status.program = "0.1.0";
  line.status.uptime_ms = 100'000;
  line.status.waits = std::move(waits);
  line.age_ms = 200;
  line.since_ms = 100'200;
  return line;
}

/// One that waits for so long.
inline status_line waiting(const std::string &name, role what, const std::string &for_what,
                           const std::string &on, std::uint64_t seconds) {
  return process_of(name, what, {{name, for_what, on, seconds * 1'000}});
}

} // namespace millrace::test
