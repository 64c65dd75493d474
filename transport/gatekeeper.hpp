// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/result.hpp"
#include "transport/curve.hpp"
#include "transport/socket.hpp"

#include <zmq.hpp>

namespace millrace {

/// Answers libzmq's question whether a CURVE key may come in (ZAP, https://rfc.zeromq.org/spec/27):
/// those of the allow-list may, and their messages carry the key as "User-Id".
/// Thread: the hub's, which polls descriptor().
class gatekeeper {
public:
  /// Before a socket with keys is bound. Errors: io.
  static result<gatekeeper> open(zmq::context_t &context);

  /// For the system's poll(); answer() reads all there is.
  int descriptor() { return descriptor_of(socket_); }
  /// Answers all questions there are.
  void answer(const curve_config &config);

private:
  explicit gatekeeper(zmq::socket_t socket) : socket_(std::move(socket)) {}
  zmq::socket_t socket_;
};

/// The key of the connection that a part came by; empty without CURVE.
std::string key_of(const zmq::message_t &part);

} // namespace millrace
