// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <fmt/format.h>

#include "tests/support/temporary_folder.hpp"

namespace millrace::test {

// Where a hub binds, by transport: each call of bind() gives another place.

struct tcp_ipv4 {
  std::string bind() { return "tcp://127.0.0.1:*"; }
};

struct tcp_ipv6 {
  std::string bind() {
    if (there())
      return "tcp://[::1]:*";
    BOOST_TEST_MESSAGE("skipped over IPv6, tested over IPv4: this machine has no ::1");
    return "tcp://127.0.0.1:*";
  }

private:
  static bool there() {
    const int fd = ::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in6 address{};
    address.sin6_family = AF_INET6;
    address.sin6_addr = in6addr_loopback;
    const bool bound =
        fd >= 0 && ::bind(fd, reinterpret_cast<const sockaddr *>(&address), sizeof address) == 0;
    if (fd >= 0)
      ::close(fd);
    return bound;
  }
};

struct ipc {
  std::string bind() { return "ipc://" + (folder_ / fmt::format("s{}", ++last_)).string(); }

private:
  temporary_folder folder_;
  int last_ = 0;
};

} // namespace millrace::test
