// SPDX-License-Identifier: Apache-2.0
#include "transport/client.hpp"

#include <array>
#include <utility>

#include "transport/link_header.hpp"
#include "transport/socket.hpp"

namespace millrace {
namespace {

using clock = std::chrono::steady_clock;

constexpr std::uint64_t request_number = 1; // a socket asks once
constexpr std::size_t largest_question = 64 << 10;
constexpr std::size_t largest_part = 64 << 20; // libzmq cuts the connection before a larger one
constexpr std::size_t most_parts = 64;

/// A message as the answer, or why it is none.
result<message> read_answer(const incoming &in) {
  const std::span bytes(in.header.data<std::byte>(), in.header.size());
  const auto header = parse_link_header(bytes, in.parts.size());
  if (!header)
    return tl::unexpected(header.error());
  if (header->kind == link_kind::refusal)
    return fail(errc::peer_lost, "it refuses: {}", header->reason);
  if (header->kind != link_kind::reply || header->request != request_number || in.too_many)
    return fail(errc::bad_format, "what came back is no answer to the question");
  if (!header->reason.empty())
    return fail(errc::peer_lost, "it does not answer: {}", header->reason);
  message out;
  for (const zmq::message_t &part : in.parts)
    out.push_back(frame::copy_of({part.data<std::byte>(), part.size()}));
  return out;
}

/// Waits for something to come to one of the two. False: the deadline has passed.
bool wait(zmq::socket_t &socket, socket_monitor &monitor, clock::time_point deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - clock::now());
  if (left.count() <= 0)
    return false;
  std::array<zmq_pollitem_t, 2> items{
      {{socket.handle(), 0, ZMQ_POLLIN, 0}, {monitor.socket().handle(), 0, ZMQ_POLLIN, 0}}};
  zmq_poll(items.data(), static_cast<int>(items.size()), left.count()); // a signal: look again
  return true;
}

result<message> await_answer(zmq::socket_t &socket, socket_monitor &monitor,
                             std::chrono::milliseconds time) {
  const auto deadline = clock::now() + time;
  do {
    std::optional<std::string> lost;
    while (const auto event = monitor.next())
      if (!lost)
        lost = why_lost(*event);
    if (const auto in = receive(socket, most_parts)) // it may have come before the connection went
      return read_answer(*in);
    if (lost)
      return fail(errc::peer_lost, "{}", *lost);
  } while (wait(socket, monitor, deadline));
  return fail(errc::timed_out, "no answer within {} s", static_cast<double>(time.count()) / 1000);
}

result<endpoint> askable(const std::string &text, const std::string &server_key, bool has_keys,
                         const message &question) {
  auto at = endpoint::parse(text);
  if (!at)
    return at;
  if (!at->is_ipc() && at->port == 0)
    return fail(errc::bad_argument, "a port is wanted to ask there");
  if (has_keys != !server_key.empty())
    return fail(errc::bad_argument, "{}",
                has_keys ? "its public key is wanted (curve.directory_key)"
                         : "it has a key; this side needs keys too (curve.folder)");
  std::size_t size = 0;
  for (const frame &part : question)
    size += part.size();
  if (size > largest_question || question.size() > most_parts)
    return fail(errc::too_large, "a question of {} bytes in {} parts, at most {} in {} are taken",
                size, question.size(), largest_question, most_parts);
  return at;
}

result<message> ask_there(const endpoint &at, const std::string &server_key,
                          const std::optional<curve_config> &curve, const std::string &run,
                          const message &question, std::chrono::milliseconds time) {
  zmq::context_t context;
  link_limits limits;
  limits.part_bytes = largest_part;
  auto socket = make_socket(context, zmq::socket_type::dealer, at, limits);
  if (!socket)
    return tl::unexpected(socket.error());
  if (curve)
    MILLRACE_TRY(use_keys(*socket, curve->mine, server_key));
  auto monitor = socket_monitor::watch(context, *socket, "question", lost_events);
  if (!monitor)
    return tl::unexpected(monitor.error());
  result<message> answer;
  if (zmq_connect(socket->handle(), at.text().c_str()) != 0) {
    answer = fail(errc::bad_argument, "cannot connect: {}", zmq_strerror(zmq_errno()));
  } else {
    link_header header{.kind = link_kind::request, .request = request_number};
    if (!run.empty())
      header.identity.emplace().run = run;
    send(*socket, {}, encode(header, question.size()), question); // if it is not sent: no answer
    answer = await_answer(*socket, *monitor, time);
  }
  monitor->stop(*socket);
  return answer;
}

} // namespace

result<message> ask(const std::string &endpoint, const std::string &server_key,
                    const std::optional<curve_config> &curve, const std::string &run,
                    const message &question, std::chrono::milliseconds deadline) {
  const auto at = askable(endpoint, server_key, curve.has_value(), question);
  auto answer = at ? ask_there(*at, server_key, curve, run, question, deadline)
                   : result<message>(tl::unexpected(at.error()));
  if (!answer)
    return with_context(std::move(answer).error(), endpoint);
  return answer;
}

} // namespace millrace
