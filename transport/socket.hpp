// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/frame.hpp"
#include "runtime/result.hpp"
#include "transport/curve.hpp"
#include "transport/endpoint.hpp"
#include "transport/hub.hpp"

#include <zmq.hpp>

namespace millrace {

/// A ROUTER or DEALER that drops nothing (no high-water mark), does not outlive its close (no
/// linger), does not reconnect, and lets no part in that is larger than limits.part_bytes.
/// @param at what it will be bound or connected to. Errors: io (out of sockets or descriptors).
result<zmq::socket_t> make_socket(zmq::context_t &context, zmq::socket_type type,
                                  const endpoint &at, const link_limits &limits);

/// Keys of a side that connects. @param server_key of the other side. Errors: bad_argument.
status use_keys(zmq::socket_t &socket, const curve_keys &mine, const std::string &server_key);

/// A message as it came from a socket.
struct incoming {
  std::string route{}; ///< ROUTER: whom it came from
  zmq::message_t header{};
  std::vector<zmq::message_t> parts{};
  std::uint64_t bytes = 0; ///< of `parts`
  bool too_many = false;   ///< it had more parts than the limit; the rest is dropped
};

/// The next message, if there is one. Never blocks. @param most parts after the header.
std::optional<incoming> receive(zmq::socket_t &socket, std::size_t most);

/// Sends header and parts, to `route` if it is not empty. Never blocks, copies no large part.
/// @returns false if nobody is there any more.
bool send(zmq::socket_t &socket, std::string_view route, const frame &header, const message &parts);

/// What the system's poll() waits on for a socket. It tells that something has changed, not that
/// something is there, and not before receive() has once found nothing: ask has_input() before
/// waiting, when the socket is new and after each receive() and send().
int descriptor_of(zmq::socket_t &socket);
bool has_input(zmq::socket_t &socket);

/// What happened to a socket's connection.
struct socket_event {
  std::uint16_t what = 0; ///< ZMQ_EVENT_...
  std::uint32_t value = 0;
};

/// After the last of these a socket that connects, and does not reconnect, has no connection.
inline constexpr int lost_events =
    ZMQ_EVENT_DISCONNECTED | ZMQ_EVENT_CLOSED | ZMQ_EVENT_CONNECT_RETRIED |
    ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL | ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL |
    ZMQ_EVENT_HANDSHAKE_FAILED_AUTH;

/// What such an event says, for people; nothing for all others.
std::optional<std::string> why_lost(const socket_event &event);

/// Tells what happens to the connections of one socket. Owner: stop() it before the socket goes.
class socket_monitor {
public:
  /// @param name unique in the context. Errors: io.
  static result<socket_monitor> watch(zmq::context_t &context, zmq::socket_t &socket,
                                      std::string_view name, int events);

  std::optional<socket_event> next();
  zmq::socket_t &socket() noexcept { return pair_; }
  void stop(zmq::socket_t &socket);

private:
  explicit socket_monitor(zmq::socket_t pair) : pair_(std::move(pair)) {}
  zmq::socket_t pair_;
};

} // namespace millrace
