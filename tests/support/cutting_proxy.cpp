// SPDX-License-Identifier: Apache-2.0
#include "tests/support/cutting_proxy.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <list>
#include <stdexcept>
#include <vector>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "transport/endpoint.hpp"

namespace millrace::test {

namespace {

using clock = std::chrono::steady_clock;
constexpr auto beat = std::chrono::milliseconds(2);

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

/// One direction of a connection: bytes that were read and not written yet.
struct pipe {
  std::vector<char> bytes{};
  std::uint64_t allowance = 0; ///< what the rate lets through now
};

struct connection {
  std::array<int, 2> fds{-1, -1};
  std::array<pipe, 2> pipes{}; ///< from fds[i] to the other one
  bool gone = false;

  void reset() {
    for (const int fd : fds) {
      const linger hard{.l_onoff = 1, .l_linger = 0};
      ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
      ::close(fd);
    }
    gone = true;
  }
};

/// Reads into an empty pipe. @returns false at the end of the stream.
bool fill(int fd, pipe &into, std::size_t most) {
  if (!into.bytes.empty() || most == 0)
    return true;
  into.bytes.resize(std::min<std::size_t>(most, 1 << 16));
  const auto got = ::recv(fd, into.bytes.data(), into.bytes.size(), MSG_DONTWAIT);
  into.bytes.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return got > 0 || (got < 0 && errno == EAGAIN);
}

/// Writes up to `most` bytes of a pipe. @returns how many, or -1 if nobody takes them.
ssize_t drain(int fd, pipe &from, std::size_t most) {
  if (from.bytes.empty() || most == 0)
    return 0;
  const auto sent =
      ::send(fd, from.bytes.data(), std::min(most, from.bytes.size()), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent > 0)
    from.bytes.erase(from.bytes.begin(), from.bytes.begin() + sent);
  return sent >= 0 || errno != EAGAIN ? sent : 0;
}

} // namespace

cutting_proxy::cutting_proxy(const std::string &to)
    : to_port_(endpoint::parse(to).value().port),
      listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
  auto address = loopback(0);
  socklen_t size = sizeof address;
  auto *plain = reinterpret_cast<sockaddr *>(&address);
  if (::bind(listener_, plain, size) != 0 || ::listen(listener_, 16) != 0 ||
      ::getsockname(listener_, plain, &size) != 0)
    throw std::runtime_error("no place for a proxy");
  endpoint_ = "tcp://127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  thread_ = std::thread([this] { run(); });
}

cutting_proxy::~cutting_proxy() {
  end_ = true;
  thread_.join();
  ::close(listener_);
}

void cutting_proxy::run() {
  std::list<connection> all;
  auto before = clock::now();
  const auto pass = [this](connection &one, std::size_t i) {
    auto &way = one.pipes[i];
    const auto cut_at = cut_at_.load();
    auto most = rate_ == 0 ? std::size_t{1} << 20 : static_cast<std::size_t>(way.allowance);
    if (cut_at != 0)
      most = std::min<std::size_t>(most, cut_at - std::min(cut_at, passed_.load()));
    const bool open = fill(one.fds[i], way, most == 0 ? 0 : 1 << 16);
    const auto sent = drain(one.fds[1 - i], way, most);
    if (sent > 0) {
      passed_ += static_cast<std::uint64_t>(sent);
      way.allowance -= std::min<std::uint64_t>(way.allowance, static_cast<std::uint64_t>(sent));
    }
    if (cut_at != 0 && passed_ >= cut_at) {
      cut_at_ = 0;
      one.reset();
    } else if (sent < 0 || (!open && way.bytes.empty())) {
      one.reset();
    }
  };
  while (!end_) {
    std::vector<pollfd> fds{{listener_, POLLIN, 0}};
    for (const auto &one : all)
      for (const int i : {0, 1}) {
        const auto side = static_cast<std::size_t>(i);
        const bool full = !one.pipes[side].bytes.empty() || stalled_ || rate_ != 0;
        fds.push_back({one.fds[side], static_cast<short>(full ? 0 : POLLIN), 0});
      }
    ::poll(fds.data(), fds.size(), static_cast<int>(beat.count()));
    const auto now = clock::now();
    const auto passed = std::chrono::duration_cast<std::chrono::microseconds>(now - before);
    before = now;
    if (const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC); fd >= 0) {
      const int other = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
      const auto address = loopback(to_port_);
      if (::connect(other, reinterpret_cast<const sockaddr *>(&address), sizeof address) == 0) {
        all.push_back({.fds = {fd, other}});
        ++connections_;
      } else {
        connection{.fds = {fd, other}}.reset();
      }
    }
    const bool cut = cut_all_.exchange(false);
    for (auto &one : all) {
      if (cut)
        one.reset();
      for (std::size_t i = 0; i < 2 && !one.gone && !stalled_; ++i) {
        one.pipes[i].allowance += rate_ * static_cast<std::uint64_t>(passed.count()) / 1'000'000;
        pass(one, i);
      }
    }
    all.remove_if([](const connection &one) { return one.gone; });
  }
  for (auto &one : all)
    one.reset();
}

} // namespace millrace::test
