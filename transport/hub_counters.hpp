// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include "transport/hub.hpp"

namespace millrace {

/// hub_stats while they are counted. Written by the hub's thread only. Thread: any may read.
struct hub_counters {
  using counter = std::atomic<std::uint64_t>;

  counter messages_sent{0}, messages_received{0};
  counter bytes_sent{0}, bytes_received{0};
  counter repeats{0}, garbage{0}, refusals{0}, auth_failures{0}, sessions{0};
  counter over_limit_bytes{0}, granted_bytes{0};
  counter in_flight_bytes{0}; ///< send() counts it up on its own thread

  static void add(counter &to, std::uint64_t count = 1) noexcept {
    to.fetch_add(count, std::memory_order_relaxed);
  }

  hub_stats read() const noexcept {
    hub_stats out;
    out.messages_sent = messages_sent;
    out.messages_received = messages_received;
    out.bytes_sent = bytes_sent;
    out.bytes_received = bytes_received;
    out.repeats = repeats;
    out.garbage = garbage;
    out.refusals = refusals;
    out.auth_failures = auth_failures;
    out.sessions = sessions;
    out.over_limit_bytes = over_limit_bytes;
    out.granted_bytes = granted_bytes;
    out.in_flight_bytes = in_flight_bytes;
    return out;
  }
};

} // namespace millrace
