// SPDX-License-Identifier: Apache-2.0
#include "transport/socket.hpp"

#include <cstring>
#include <utility>

#include "transport/parts.hpp"

namespace millrace {

namespace {

bool receive_part(zmq::message_t &part, zmq::socket_t &socket) {
  return zmq_msg_recv(part.handle(), socket.handle(), ZMQ_DONTWAIT) >= 0;
}

bool send_part(zmq::message_t part, zmq::socket_t &socket, bool more) {
  const int flags = ZMQ_DONTWAIT | (more ? ZMQ_SNDMORE : 0);
  return zmq_msg_send(part.handle(), socket.handle(), flags) >= 0; // what is not sent is freed here
}

} // namespace

result<zmq::socket_t> make_socket(zmq::context_t &context, zmq::socket_type type,
                                  const endpoint &at, const link_limits &limits) try {
  zmq::socket_t socket(context, type);
  socket.set(zmq::sockopt::linger, 0);
  socket.set(zmq::sockopt::sndhwm, 0);
  socket.set(zmq::sockopt::rcvhwm, 0);
  socket.set(zmq::sockopt::ipv6, at.wants_ipv6());
  socket.set(zmq::sockopt::reconnect_ivl, -1);
  socket.set(zmq::sockopt::maxmsgsize, static_cast<std::int64_t>(limits.part_bytes));
  if (type == zmq::socket_type::router)
    socket.set(zmq::sockopt::router_mandatory, true);
  return socket;
} catch (const zmq::error_t &why) {
  return fail(errc::io, "no socket: {} (ulimit -n?)", why.what());
}

status use_keys(zmq::socket_t &socket, const curve_keys &mine, const std::string &server_key) try {
  socket.set(zmq::sockopt::curve_publickey, mine.public_key);
  socket.set(zmq::sockopt::curve_secretkey, mine.secret_key);
  socket.set(zmq::sockopt::curve_serverkey, server_key);
  return {};
} catch (const zmq::error_t &why) {
  return fail(errc::bad_argument, "not a CURVE key: {}", why.what());
}

std::optional<incoming> receive(zmq::socket_t &socket, std::size_t most) {
  zmq::message_t part;
  if (!receive_part(part, socket))
    return std::nullopt;
  incoming in;
  if (socket.get(zmq::sockopt::type) == ZMQ_ROUTER) {
    in.route = part.to_string();
    if (!part.more() || !receive_part(part, socket))
      return in; // a route without a message: an empty header is garbage
  }
  bool more = part.more();
  in.header = std::move(part);
  while (more) {
    zmq::message_t next;
    if (!receive_part(next, socket))
      break;
    more = next.more();
    if (in.parts.size() == most) {
      in.too_many = true;
      continue;
    }
    in.bytes += next.size();
    in.parts.push_back(std::move(next));
  }
  return in;
}

bool send(zmq::socket_t &socket, std::string_view route, const frame &header,
          const message &parts) {
  if (!route.empty() && !send_part(zmq::message_t(route.data(), route.size()), socket, true))
    return false;
  if (!send_part(zmq::message_t(header.data(), header.size()), socket, !parts.empty()))
    return false;
  for (std::size_t i = 0; i < parts.size(); ++i)
    if (!send_part(lend_part(parts[i]), socket, i + 1 < parts.size()))
      return false;
  return true;
}

std::optional<std::string> why_lost(const socket_event &event) {
  switch (event.what) {
  case ZMQ_EVENT_CLOSED:
  case ZMQ_EVENT_CONNECT_RETRIED:
    return "nobody accepts connections there";
  case ZMQ_EVENT_HANDSHAKE_FAILED_AUTH:
    return "it does not let this process's key in; add it to its `allowed` file";
  case ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL:
  case ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL:
    return "the handshake failed: one side has keys and the other has not, or it has another key";
  case ZMQ_EVENT_DISCONNECTED:
    return "the connection was cut";
  default:
    return std::nullopt;
  }
}

int descriptor_of(zmq::socket_t &socket) { return socket.get(zmq::sockopt::fd); }

bool has_input(zmq::socket_t &socket) {
  return (socket.get(zmq::sockopt::events) & ZMQ_POLLIN) != 0;
}

result<socket_monitor> socket_monitor::watch(zmq::context_t &context, zmq::socket_t &socket,
                                             std::string_view name, int events) try {
  const auto address = fmt::format("inproc://monitor-{}", name);
  zmq::socket_t pair(context, zmq::socket_type::pair);
  pair.set(zmq::sockopt::linger, 0);
  pair.set(zmq::sockopt::rcvhwm, 0); // else libzmq's thread waits for us when it is full
  if (zmq_socket_monitor(socket.handle(), address.c_str(), events) != 0)
    return fail(errc::io, "no socket monitor: {}", zmq_strerror(zmq_errno()));
  pair.connect(address);
  return socket_monitor(std::move(pair));
} catch (const zmq::error_t &why) {
  return fail(errc::io, "no socket monitor: {}", why.what());
}

std::optional<socket_event> socket_monitor::next() {
  zmq::message_t what, address;
  if (!receive_part(what, pair_))
    return std::nullopt;
  if (what.more())
    receive_part(address, pair_);
  socket_event event;
  if (what.size() >= sizeof event.what + sizeof event.value) {
    std::memcpy(&event.what, what.data(), sizeof event.what);
    std::memcpy(&event.value, static_cast<const char *>(what.data()) + sizeof event.what,
                sizeof event.value);
  }
  return event;
}

void socket_monitor::stop(zmq::socket_t &socket) {
  zmq_socket_monitor(socket.handle(), nullptr, 0);
  pair_.close();
}

} // namespace millrace
