// SPDX-License-Identifier: Apache-2.0
#include "tests/support/stand_in_server.hpp"

#include <array>
#include <charconv>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/json.hpp"

namespace millrace::test {

namespace {

int bound_socket(std::uint16_t &port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  MILLRACE_ASSERT(fd >= 0 && ::bind(fd, reinterpret_cast<sockaddr *>(&address), size) == 0 &&
                      ::getsockname(fd, reinterpret_cast<sockaddr *>(&address), &size) == 0,
                  "no socket on loopback");
  port = ntohs(address.sin_port);
  return fd;
}

/// The value of a header, found by its name as the client writes it.
std::string header(std::string_view head, std::string_view name) {
  const auto at = head.find(name);
  if (at == std::string_view::npos)
    return {};
  const auto from = at + name.size();
  return std::string(head.substr(from, head.find("\r\n", from) - from));
}

} // namespace

stand_in_server::stand_in_server(script what)
    : script_(std::move(what)), listener_(bound_socket(port_)) {
  MILLRACE_ASSERT(::listen(listener_, 64) == 0, "cannot listen on port {}", port_);
  acceptor_ = std::thread([this] { accept_all(); });
}

stand_in_server::~stand_in_server() {
  stop_.set();
  acceptor_.join();
  for (auto &one : connections_)
    one.join();
  ::close(listener_);
}

std::string stand_in_server::url() const { return fmt::format("http://127.0.0.1:{}", port_); }

bool stand_in_server::wait(int fd, short events, int milliseconds) const {
  std::array<pollfd, 2> fds{pollfd{fd, events, 0}, pollfd{stop_.descriptor(), POLLIN, 0}};
  ::poll(fds.data(), fds.size(), milliseconds);
  return fds[1].revents == 0;
}

void stand_in_server::accept_all() {
  while (wait(listener_, POLLIN, -1)) {
    const int connection = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (connection < 0)
      continue;
    const std::lock_guard lock(mutex_);
    connections_.emplace_back([this, connection] { serve(connection); });
  }
}

void stand_in_server::serve(int connection) {
  std::string got;
  std::array<char, 65536> buffer;
  std::size_t head = std::string::npos;
  std::size_t length = 0;
  while (head == std::string::npos || got.size() < head + length) {
    if (!wait(connection, POLLIN, -1))
      break;
    const auto size = ::recv(connection, buffer.data(), buffer.size(), 0);
    if (size <= 0)
      break;
    got.append(buffer.data(), static_cast<std::size_t>(size));
    if (head != std::string::npos || (head = got.find("\r\n\r\n")) == std::string::npos)
      continue;
    head += 4;
    const auto text = header(std::string_view(got).substr(0, head), "Content-Length: ");
    std::from_chars(text.data(), text.data() + text.size(), length);
  }
  if (head != std::string::npos && got.size() >= head + length) {
    seen_request request;
    request.number = requests_++;
    const auto path = got.find(' ') + 1;
    request.path = got.substr(path, got.find(' ', path) - path);
    request.id = header(std::string_view(got).substr(0, head), "X-Request-Id: ");
    request.body = got.substr(head);
    answer(connection, script_(request));
  }
  ::close(connection);
}

void stand_in_server::answer(int connection, const scripted_reply &reply) {
  using after = scripted_reply::after;
  std::string_view left = reply.bytes;
  for (;;) {
    if (left.empty() && reply.then == after::flood)
      left = reply.bytes;
    if (left.empty())
      break;
    if (!wait(connection, POLLOUT, -1))
      return;
    const auto sent = ::send(connection, left.data(), left.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0)
      return;
    left.remove_prefix(static_cast<std::size_t>(sent));
  }
  char byte = 0;
  if (reply.then == after::hold)
    while (wait(connection, POLLIN, -1) && ::recv(connection, &byte, 1, 0) > 0) {
    }
  if (reply.then == after::drip)
    while (wait(connection, POLLIN, 1) && ::send(connection, " ", 1, MSG_NOSIGNAL) == 1) {
    }
}

std::string url_of_nobody() {
  std::uint16_t port = 0;
  ::close(bound_socket(port));
  return fmt::format("http://127.0.0.1:{}", port);
}

std::string http_ok(std::string_view body) {
  return fmt::format("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n"
                     "\r\n{}",
                     body.size(), body);
}

std::string http_status(int code, std::string_view body) {
  return fmt::format("HTTP/1.1 {} Status\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n"
                     "\r\n{}",
                     code, body.size(), body);
}

std::vector<float> stand_in_logprobs(std::span<const std::int32_t> prompt) {
  std::vector<float> out;
  std::uint64_t hash = 0;
  for (const auto token : prompt) {
    hash = hash * 6364136223846793005U + static_cast<std::uint64_t>(token) + 1442695040888963407U;
    out.push_back(out.empty() ? 0.0F : -static_cast<float>((hash >> 33) % 8192) / 1024.0F);
  }
  return out;
}

std::vector<std::int32_t> stand_in_tokens(std::string_view text) {
  std::vector<std::int32_t> out;
  for (const char c : text)
    out.push_back(static_cast<unsigned char>(c) + 3);
  return out;
}

std::vector<std::int32_t> prompt_of(const seen_request &request) {
  json::document document;
  const auto root = document.parse(request.body);
  MILLRACE_ASSERT(root, "{}", root.error().message);
  auto prompt = root->get<std::vector<std::int32_t>>("prompt");
  MILLRACE_ASSERT(prompt, "{}", prompt.error().message);
  return std::move(*prompt);
}

std::string completion_answer(const seen_request &request) {
  const auto prompt = prompt_of(request);
  const auto values = stand_in_logprobs(prompt);
  std::string out = fmt::format(R"({{"id":"cmpl-{}","object":"text_completion","choices":[)"
                                R"({{"index":0,"text":"x","prompt_logprobs":[null)",
                                request.id);
  for (std::size_t i = 1; i < prompt.size(); ++i)
    out += fmt::format(R"(,{{"{}":{{"logprob":{},"rank":1,"decoded_token":"\u00e9"}}}})", prompt[i],
                       values[i]);
  return out + R"(]}],"usage":{"prompt_tokens":1}})";
}

scripted_reply honest(const seen_request &request) {
  if (request.path == "/v1/completions")
    return {http_ok(completion_answer(request))};
  json::document document;
  const auto root = document.parse(request.body);
  const auto text =
      root ? root->get<std::string>("prompt") : root.map([](auto) { return std::string(); });
  std::string ids;
  for (const auto id : stand_in_tokens(text ? *text : ""))
    ids += fmt::format("{}{}", ids.empty() ? "" : ",", id);
  return {http_ok(fmt::format(R"({{"count":1,"tokens":[{}]}})", ids))};
}

} // namespace millrace::test
