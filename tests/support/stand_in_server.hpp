// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "transport/http_client.hpp"

namespace millrace::test {

/// A request as the stand-in got it.
struct seen_request {
  std::size_t number = 0; ///< from 0, over all connections
  std::string path;
  std::string id; ///< X-Request-Id
  std::string body;
};

/// What it sends, and what comes after.
struct scripted_reply {
  enum class after : std::uint8_t {
    close, ///< the connection
    hold,  ///< say nothing more until the client goes
    flood, ///< the same bytes again and again until the client goes
    drip   ///< then a space every millisecond until the client goes
  };
  std::string bytes;
  after then = after::close;
};

/// A server on loopback that does to each request what a script says, byte by byte: what no proper
/// server would. The script is called from threads of the server.
class stand_in_server {
public:
  using script = std::function<scripted_reply(const seen_request &)>;

  explicit stand_in_server(script what);
  ~stand_in_server();
  stand_in_server(const stand_in_server &) = delete;
  stand_in_server &operator=(const stand_in_server &) = delete;

  std::string url() const;
  std::uint16_t port() const noexcept { return port_; }
  std::size_t requests() const noexcept { return requests_; }

private:
  void accept_all();
  void serve(int connection);
  void answer(int connection, const scripted_reply &reply);
  /// Until the connection has something to read or is gone, or this long; false: stop.
  bool wait(int fd, short events, int milliseconds) const;

  script script_;
  stop_signal stop_;
  std::uint16_t port_ = 0; ///< before listener_, which sets it
  int listener_;
  std::atomic<std::size_t> requests_{0};
  std::mutex mutex_;
  std::vector<std::thread> connections_; ///< guarded by mutex_
  std::thread acceptor_;
};

/// A free port of loopback where nobody listens.
std::string url_of_nobody();

/// "HTTP/1.1 200 OK", a JSON content type, the length, and this body.
std::string http_ok(std::string_view body);
/// Another status, with a body of text.
std::string http_status(int code, std::string_view body = "");

/// The logprobs that the stand-ins give: 0 for the first token, then a multiple of 1/1024 that
/// depends on all tokens up to it. tests/support/reference_server.py has the same.
std::vector<float> stand_in_logprobs(std::span<const std::int32_t> prompt);
/// The ids that the stand-ins' /tokenize gives: each byte plus 3.
std::vector<std::int32_t> stand_in_tokens(std::string_view text);

/// The token ids of a request's body.
std::vector<std::int32_t> prompt_of(const seen_request &request);
/// An honest answer, as JSON.
std::string completion_answer(const seen_request &request);
/// An honest answer to any request of ours.
scripted_reply honest(const seen_request &request);

} // namespace millrace::test
