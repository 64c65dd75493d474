// SPDX-License-Identifier: Apache-2.0
#include "transport/hub.hpp"

#include <utility>

#include "transport/hub_thread.hpp"

namespace millrace {

hub::hub(std::unique_ptr<thread> impl) : thread_(std::move(impl)) {}
hub::~hub() = default;

result<std::unique_ptr<hub>> hub::start(hub_options options, hub_listener &listener) {
  auto started = thread::start(std::move(options), listener);
  if (!started)
    return tl::unexpected(std::move(started).error());
  return std::unique_ptr<hub>(new hub(std::move(*started)));
}

const std::string &hub::endpoint() const noexcept { return thread_->endpoint(); }

link_id hub::open(link_target target) { return thread_->open(std::move(target)); }

void hub::close(link_id link) { thread_->close(link); }

void hub::send(link_id link, lane where, message parts, bool asked_for) {
  thread_->send(link, where, std::move(parts), asked_for);
}

bool hub::can_take(link_id link) const {
  const auto room = thread_->room_of(link);
  if (!room)
    return false;
  if (room->can_take())
    return true;
  room->waiting = true;
  return room->can_take(); // it may have come in between: then room_came() comes once in vain
}

std::int64_t hub::room(link_id link) const {
  const auto room = thread_->room_of(link);
  if (!room)
    return 0;
  if (!room->used.exchange(true)) // a peer that was never sent to has room too
    thread_->open_data(link);
  return room->credit - room->queued;
}

void hub::answer(request_id request, message parts) { thread_->answer(request, std::move(parts)); }

void hub::set_hungry(bool hungry) { thread_->set_hungry(hungry); }

hub_stats hub::stats() const { return thread_->stats(); }

std::vector<undelivered> hub::stop(std::chrono::milliseconds deadline) {
  return thread_->stop(deadline);
}

} // namespace millrace
