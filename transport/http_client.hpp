// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "transport/http_response.hpp"
#include "transport/http_url.hpp"

namespace millrace {

/// Tells all who wait in http_post to stop, from any thread; stays set.
class stop_signal {
public:
  stop_signal();
  ~stop_signal();
  stop_signal(const stop_signal &) = delete;
  stop_signal &operator=(const stop_signal &) = delete;

  void set() noexcept;
  /// Readable (poll) once it is set.
  int descriptor() const noexcept { return fd_; }

private:
  int fd_;
};

struct http_request {
  http_url server;
  std::string_view path; ///< "/v1/completions"
  std::string_view id;   ///< goes as X-Request-Id
  std::string_view body; ///< JSON
  std::chrono::milliseconds connect_timeout{0};
  std::chrono::milliseconds timeout{0}; ///< for all of it; the name's resolution comes on top
  std::uint64_t most_body = 0;          ///< bytes of the answer
};

/// Posts JSON over a connection of its own and hands the answer on as it comes: nothing grows with
/// what a server sends, and a server that sends a byte now and then does not stop the clock.
/// Blocks. Not interruptible while the name of the server is resolved. No redirects, no TLS.
/// Errors: peer_lost (refused, reset, ended early, not resolved), timed_out, conflict (stopped),
/// those of http_response_reader and of the receiver.
status http_post(const http_request &request, const http_receiver &to, const stop_signal &stop);

} // namespace millrace
