// SPDX-License-Identifier: Apache-2.0
#include "transport/dealer_session.hpp"

#include <cstring>
#include <utility>

namespace millrace {

result<dealer_session> dealer_session::open(zmq::context_t &context, const hub_options &options,
                                            const link_target &to, lane where, std::uint64_t number,
                                            time now) {
  const auto at = endpoint::parse(to.endpoint);
  if (!at)
    return tl::unexpected(at.error());
  auto socket = make_socket(context, zmq::socket_type::dealer, *at, options.limits);
  if (!socket)
    return tl::unexpected(socket.error());
  if (options.curve)
    MILLRACE_TRY(use_keys(*socket, options.curve->mine, to.key));
  auto monitor = socket_monitor::watch(context, *socket, fmt::format("{:x}", number), lost_events);
  if (!monitor)
    return tl::unexpected(monitor.error());
  dealer_session made(std::move(*socket), std::move(*monitor), number, now);
  if (zmq_connect(made.socket_.handle(), at->text().c_str()) != 0)
    return fail(errc::bad_argument, "cannot connect to '{}': {}", to.endpoint,
                zmq_strerror(zmq_errno()));
  const link_header hello{
      .kind = link_kind::hello, .where = where, .session = number, .identity = options.self};
  if (!made.send(hello))
    return fail(errc::io, "cannot send to '{}'", to.endpoint);
  return made;
}

dealer_session &dealer_session::operator=(dealer_session &&other) noexcept {
  if (this != &other) {
    close();
    socket_ = std::move(other.socket_);
    monitor_ = std::move(other.monitor_);
    number_ = other.number_;
    welcomed_ = other.welcomed_;
    heard_ = other.heard_;
    socket_descriptor_ = other.socket_descriptor_;
    monitor_descriptor_ = other.monitor_descriptor_;
    socket_ready_ = other.socket_ready_;
    monitor_ready_ = other.monitor_ready_;
    sent_ = other.sent_;
  }
  return *this;
}

void dealer_session::close() noexcept {
  if (socket_) // not moved from
    monitor_.stop(socket_);
  socket_.close();
}

std::optional<link_header> dealer_session::receive(time now, std::uint64_t &garbage) {
  while (socket_ready_) {
    const auto in = millrace::receive(socket_, 0);
    socket_ready_ = in.has_value();
    if (!in)
      break;
    const std::span bytes(in->header.data<std::byte>(), in->header.size());
    auto header = parse_link_header(bytes, in->too_many ? 1 : 0);
    const bool any = header && header->kind == link_kind::refusal && header->session == 0;
    if (header && (any || header->session == number_)) {
      heard_ = now;
      return std::move(*header);
    }
    ++garbage;
  }
  return std::nullopt;
}

bool dealer_session::has_input() {
  if (std::exchange(sent_, false) && !socket_ready_)
    socket_ready_ = millrace::has_input(socket_);
  return socket_ready_ || monitor_ready_;
}

std::optional<std::string> dealer_session::lost() {
  if (!std::exchange(monitor_ready_, false))
    return std::nullopt;
  std::optional<std::string> why;
  while (const auto event = monitor_.next())
    if (!why)
      why = why_lost(*event);
  return why;
}

} // namespace millrace
