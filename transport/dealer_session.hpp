// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "runtime/result.hpp"
#include "transport/link_header.hpp"
#include "transport/socket.hpp"

#include <zmq.hpp>

namespace millrace {

/// One session of a lane, from the side that sends: a DEALER and its monitor. The socket is never
/// used for a second session.
class dealer_session {
public:
  using time = std::chrono::steady_clock::time_point;

  /// Connects and says hello. Errors: io, bad_argument.
  static result<dealer_session> open(zmq::context_t &context, const hub_options &options,
                                     const link_target &to, lane where, std::uint64_t number,
                                     time now);
  dealer_session(dealer_session &&) noexcept = default;
  dealer_session &operator=(dealer_session &&other) noexcept;
  ~dealer_session() { close(); }

  std::uint64_t number() const noexcept { return number_; }
  bool welcomed() const noexcept { return welcomed_; }
  void set_welcomed() noexcept { welcomed_ = true; }
  time heard() const noexcept { return heard_; } ///< when a message came last, or it was opened

  bool send(const link_header &header, const message &parts = {}) {
    sent_ = true;
    return millrace::send(socket_, {}, encode(header, parts.size()), parts);
  }
  /// The next header from the peer. What cannot be read is left out, and counted in `garbage`.
  std::optional<link_header> receive(time now, std::uint64_t &garbage);
  /// Why the connection is gone, if it is.
  std::optional<std::string> lost();

  /// For the system's poll().
  int socket_descriptor() const noexcept { return socket_descriptor_; }
  int monitor_descriptor() const noexcept { return monitor_descriptor_; }
  /// They can be read.
  void socket_is_ready() noexcept { socket_ready_ = true; }
  void monitor_is_ready() noexcept { monitor_ready_ = true; }
  /// To be asked before waiting, after anything was done with it, being made included.
  bool has_input();

private:
  dealer_session(zmq::socket_t socket, socket_monitor monitor, std::uint64_t number, time now)
      : socket_(std::move(socket)), monitor_(std::move(monitor)), number_(number), heard_(now),
        socket_descriptor_(descriptor_of(socket_)),
        monitor_descriptor_(descriptor_of(monitor_.socket())) {}
  void close() noexcept;

  zmq::socket_t socket_;
  socket_monitor monitor_;
  std::uint64_t number_;
  bool welcomed_ = false;
  time heard_;
  int socket_descriptor_, monitor_descriptor_;
  bool socket_ready_ = true, monitor_ready_ = true; ///< not found empty since they were signalled
  bool sent_ = true;                                ///< since it was asked for input
};

} // namespace millrace
