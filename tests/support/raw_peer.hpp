// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstring>
#include <optional>
#include <string>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/support/hubs.hpp"
#include "transport/link_header.hpp"
#include "transport/socket.hpp"

namespace millrace::test {

/// A peer that says what it likes: a bare DEALER.
class raw_peer {
public:
  explicit raw_peer(const std::string &to)
      : socket_(make_socket(context_, zmq::socket_type::dealer, endpoint::parse(to).value(), {})
                    .value()) {
    // A socket that gives up when its connection ends forgets what it has received and nobody has
    // read yet: an answer that comes just before the end would be lost.
    socket_.set(zmq::sockopt::reconnect_ivl, 3'600'000);
    socket_.connect(to);
  }

  void send(const link_header &header, const message &parts = {}) {
    millrace::send(socket_, {}, encode(header, parts.size()), parts);
  }
  void send_bytes(const frame &header, const message &parts = {}) {
    millrace::send(socket_, {}, header, parts);
  }
  /// The next header of that kind; others are skipped.
  std::optional<link_header> receive(link_kind kind) {
    std::optional<link_header> found;
    eventually([&] {
      while (auto in = millrace::receive(socket_, 1000)) {
        auto header =
            parse_link_header({in->header.data<std::byte>(), in->header.size()}, in->parts.size());
        if (header && header->kind == kind)
          return found.emplace(std::move(*header)), true;
      }
      return false;
    });
    return found;
  }
  /// Says hello as `who` and waits for the welcome.
  std::optional<link_header> hello(const process_identity &who, lane where, std::uint64_t session) {
    send({.kind = link_kind::hello, .where = where, .session = session, .identity = who});
    return receive(link_kind::welcome);
  }

private:
  zmq::context_t context_;
  zmq::socket_t socket_;
};

/// A TCP connection that sends any bytes. @param to "tcp://127.0.0.1:PORT".
class raw_tcp {
public:
  explicit raw_tcp(const std::string &to) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(endpoint::parse(to).value().port);
    ::inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
    if (::connect(fd_, reinterpret_cast<const sockaddr *>(&address), sizeof address) != 0)
      throw std::runtime_error("cannot connect to " + to);
  }
  raw_tcp(const raw_tcp &) = delete;
  raw_tcp &operator=(const raw_tcp &) = delete;
  ~raw_tcp() { ::close(fd_); }

  void send(const std::string &bytes) {
    (void)!::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  /// Waits until the other side has closed the connection.
  bool closed() {
    timeval limit{.tv_sec = long_enough.count(), .tv_usec = 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    std::array<char, 4096> drop{};
    ssize_t got = 0;
    while ((got = ::recv(fd_, drop.data(), drop.size(), 0)) > 0)
      ;
    return got == 0 || errno == ECONNRESET;
  }

private:
  int fd_;
};

} // namespace millrace::test
