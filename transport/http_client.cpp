// SPDX-License-Identifier: Apache-2.0
#include "transport/http_client.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <utility>

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/posix_file.hpp"

namespace millrace {

namespace {

using clock = std::chrono::steady_clock;

class socket_handle {
public:
  explicit socket_handle(int fd) noexcept : fd_(fd) {}
  ~socket_handle() {
    if (fd_ >= 0)
      ::close(fd_);
  }
  socket_handle(socket_handle &&other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  socket_handle &operator=(socket_handle &&other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  int get() const noexcept { return fd_; }

private:
  int fd_;
};

/// One request under way.
class exchange {
public:
  exchange(const http_request &request, const stop_signal &stop)
      : request_(request), stop_(stop), end_(clock::now() + request.timeout) {}

  result<socket_handle> connect() const;
  /// Nothing that a server does before it has read everything is an error here: its answer says it.
  status send(const socket_handle &socket) const;
  status receive(const socket_handle &socket, const http_receiver &to) const;

private:
  result<socket_handle> connect_to(const addrinfo &address) const;
  /// Until the socket can do one of `events`. @param doing "connect", for messages.
  status wait(int fd, short events, clock::time_point until, std::string_view doing) const;

  const http_request &request_;
  const stop_signal &stop_;
  const clock::time_point end_;
};

status exchange::wait(int fd, short events, clock::time_point until, std::string_view doing) const {
  std::array<pollfd, 2> fds{pollfd{fd, events, 0}, pollfd{stop_.descriptor(), POLLIN, 0}};
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - clock::now()).count();
    if (left <= 0)
      return fail(errc::timed_out, "no {} within {} ms", doing,
                  (until < end_ ? request_.connect_timeout : request_.timeout).count());
    const auto most = std::min<std::int64_t>(left, 1'000'000);
    const auto ready = ::poll(fds.data(), fds.size(), static_cast<int>(most));
    if (ready < 0 && errno != EINTR)
      return fail(errc::io, "poll: {}", reason_of(errno));
    if (ready > 0 && fds[1].revents != 0)
      return fail(errc::conflict, "stopped");
    if (ready > 0)
      return {};
  }
}

result<socket_handle> exchange::connect_to(const addrinfo &address) const {
  socket_handle out(::socket(address.ai_family, address.ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC,
                             address.ai_protocol));
  if (out.get() < 0)
    return fail(errc::io, "socket: {}", reason_of(errno));
  const int on = 1;
  ::setsockopt(out.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (::connect(out.get(), address.ai_addr, address.ai_addrlen) == 0)
    return out;
  if (errno != EINPROGRESS)
    return fail(errc::peer_lost, "connect: {}", reason_of(errno));
  const auto until = std::min(end_, clock::now() + request_.connect_timeout);
  MILLRACE_TRY(wait(out.get(), POLLOUT, until, "connection"));
  int why = 0;
  socklen_t size = sizeof why;
  ::getsockopt(out.get(), SOL_SOCKET, SO_ERROR, &why, &size);
  if (why != 0)
    return fail(errc::peer_lost, "connect: {}", reason_of(why));
  return out;
}

result<socket_handle> exchange::connect() const {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo *found = nullptr;
  const auto &url = request_.server;
  const auto code =
      ::getaddrinfo(url.host.c_str(), std::to_string(url.port).c_str(), &hints, &found);
  if (code != 0)
    return fail(errc::peer_lost, "host '{}': {}", url.host, ::gai_strerror(code));
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, &::freeaddrinfo);
  result<socket_handle> out = fail(errc::peer_lost, "host '{}' has no address", url.host);
  for (const auto *at = found; at != nullptr; at = at->ai_next) {
    out = connect_to(*at);
    if (out || out.error().code == errc::conflict)
      break;
  }
  return out;
}

status exchange::send(const socket_handle &socket) const {
  auto text = fmt::format("POST {}{} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n"
                          "Content-Type: application/json\r\nAccept: application/json\r\n"
                          "Accept-Encoding: identity\r\nUser-Agent: millrace\r\n"
                          "X-Request-Id: {}\r\nContent-Length: {}\r\n\r\n",
                          request_.server.prefix, request_.path, request_.server.authority(),
                          request_.id, request_.body.size());
  text.append(request_.body);
  std::string_view left = text;
  while (!left.empty()) {
    const auto sent = ::send(socket.get(), left.data(), left.size(), MSG_NOSIGNAL);
    if (sent >= 0) {
      left.remove_prefix(static_cast<std::size_t>(sent));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      MILLRACE_TRY(wait(socket.get(), POLLOUT, end_, "room for the request"));
    } else if (errno == EPIPE || errno == ECONNRESET) {
      return {};
    } else if (errno != EINTR) {
      return fail(errc::peer_lost, "send: {}", reason_of(errno));
    }
  }
  return {};
}

status exchange::receive(const socket_handle &socket, const http_receiver &to) const {
  std::array<char, std::size_t{64} << 10> buffer;
  http_response_reader reader(request_.most_body);
  while (!reader.complete()) {
    MILLRACE_TRY(wait(socket.get(), POLLIN, end_, "whole answer"));
    const auto got = ::recv(socket.get(), buffer.data(), buffer.size(), 0);
    if (got == 0)
      return reader.finish();
    if (got > 0)
      MILLRACE_TRY(reader.feed({buffer.data(), static_cast<std::size_t>(got)}, to));
    else if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)
      return fail(errc::peer_lost, "receive: {}", reason_of(errno));
  }
  return {};
}

} // namespace

stop_signal::stop_signal() : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  MILLRACE_ASSERT(fd_ >= 0, "eventfd: {}", reason_of(errno));
}

stop_signal::~stop_signal() { ::close(fd_); }

void stop_signal::set() noexcept {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(fd_, &one, sizeof one); // full: it is set already
}

status http_post(const http_request &request, const http_receiver &to, const stop_signal &stop) {
  const exchange under_way(request, stop);
  const auto socket = under_way.connect();
  if (!socket)
    return tl::unexpected(socket.error());
  MILLRACE_TRY(under_way.send(*socket));
  return under_way.receive(*socket, to);
}

} // namespace millrace
