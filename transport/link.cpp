// SPDX-License-Identifier: Apache-2.0
#include "transport/link.hpp"

#include <algorithm>
#include <utility>

#include "runtime/log.hpp"

namespace millrace {

link::link(hub_core &core, link_id id, link_target to, std::shared_ptr<link_room> room)
    : core_(core), id_(id), to_(std::move(to)), room_(std::move(room)),
      control_(lane::control, false,
               {.timeout = core.options.limits.timeout, .min_rate = core.options.limits.min_rate}),
      data_(lane::data, true,
            {.timeout = core.options.limits.timeout, .min_rate = core.options.limits.min_rate}) {}

link::~link() { core_.counters.in_flight_bytes -= control_.queue.bytes() + data_.queue.bytes(); }

void link::push(lane where, message parts, bool asked_for) {
  end_of(where).queue.push(std::move(parts), asked_for);
  data_wanted_ = data_wanted_ || where == lane::data;
}

dealer_session *link::session(lane where) noexcept {
  auto &session = end_of(where).session;
  return session ? &*session : nullptr;
}

bool link::has_input() {
  return (control_.session && control_.session->has_input()) ||
         (data_.session && data_.session->has_input());
}

undelivered link::left() const {
  return {.process = to_.process,
          .messages = control_.queue.messages() + data_.queue.messages(),
          .bytes = control_.queue.bytes() + data_.queue.bytes()};
}

void link::change(link_state to, const std::string &why) {
  if (for_good() || (to == state_ && told_))
    return;
  state_ = to;
  told_ = true;
  core_.listener.link_changed(id_, to, why);
}

void link::finish(link_state to, const std::string &why) {
  control_.session.reset();
  data_.session.reset();
  control_.queue.end();
  data_.queue.end();
  change(to, why);
}

void link::connect(lane_end &end, time now) {
  auto session =
      dealer_session::open(core_.context, core_.options, to_, end.where, core_.new_session(), now);
  if (!session)
    return drop(end, now, session.error().message);
  hub_counters::add(core_.counters.sessions);
  end.session.emplace(std::move(*session));
}

/// Ends a session; another one is tried after a pause that doubles with every try in vain.
void link::drop(lane_end &end, time now, const std::string &why) {
  const bool was_up = end.session && end.session->welcomed();
  end.session.reset();
  end.queue.end();
  end.tries = was_up ? 1 : std::min(end.tries + 1, 20);
  std::chrono::microseconds pause = std::min<std::chrono::microseconds>(
      core_.options.limits.back_off * (std::int64_t{1} << (end.tries - 1)),
      core_.options.limits.timeout);
  const auto half = static_cast<std::uint32_t>(std::min<std::int64_t>(pause.count() / 2, 1 << 30));
  pause -= std::chrono::microseconds(half > 0 ? core_.random.below(half) : 0); // not all at once
  end.retry_at = now + pause;
  if (end.where == lane::control)
    change(link_state::down, why);
}

/// The peer is the one that the owner means.
bool link::is_same(const process_identity &who) {
  if (who.process != to_.process) {
    finish(link_state::replaced, fmt::format("'{}' is process '{}' now, it was '{}'", to_.endpoint,
                                             who.process, to_.process));
    return false;
  }
  if (to_.incarnation == 0)
    to_.incarnation = who.incarnation;
  if (who.incarnation == to_.incarnation)
    return true;
  finish(link_state::replaced,
         fmt::format("process '{}' was started again: incarnation {}, it was {}", to_.process,
                     who.incarnation, to_.incarnation));
  return false;
}

void link::welcome(lane_end &end, const link_header &in, time now) {
  if (end.session->welcomed() || in.where != end.where || !is_same(*in.identity))
    return;
  const bool control = end.where == lane::control;
  const auto begun =
      end.queue.begin(control ? in.control_received : in.data_received, in.data_credit);
  if (!begun)
    return finish(link_state::replaced,
                  fmt::format("process '{}': {}", to_.process, begun.error().message));
  end.session->set_welcomed();
  end.tries = 0;
  told_wanted_ = 0;
  if (control) {
    beat_ = now;
    change(link_state::up, {});
  }
}

void link::take_answers(const link_header &in, time now) {
  if (const auto ok = control_.queue.received(in.control_received); !ok)
    return drop(control_, now, ok.error().message);
  if (!data_.session || !data_.session->welcomed() || in.data_session != data_.session->number())
    return;
  if (const auto ok = data_.queue.received(in.data_received); !ok)
    return drop(data_, now, ok.error().message);
  data_.queue.credit(in.data_credit);
}

void link::take(lane_end &end, const link_header &in, time now) {
  switch (in.kind) {
  case link_kind::welcome:
    return welcome(end, in, now);
  case link_kind::refusal: {
    const auto why = fmt::format("process '{}' says: {}", to_.process, in.reason);
    return in.for_good ? finish(link_state::refused, why) : drop(end, now, why);
  }
  case link_kind::heartbeat:
    if (end.where == lane::control && end.session->welcomed())
      return take_answers(in, now);
    return;
  default:
    hub_counters::add(core_.counters.garbage);
  }
}

void link::read(lane_end &end, time now) {
  std::uint64_t garbage = 0;
  while (end.session) { // take() may end it
    const auto in = end.session->receive(now, garbage);
    if (!in)
      break;
    take(end, *in, now);
  }
  hub_counters::add(core_.counters.garbage, garbage);
  if (!end.session)
    return;
  if (const auto why = end.session->lost())
    drop(end, now, fmt::format("process '{}' at '{}': {}", to_.process, to_.endpoint, *why));
}

void link::read(time now) {
  const auto before = left().bytes;
  read(control_, now);
  read(data_, now);
  core_.counters.in_flight_bytes -= before - left().bytes;
}

void link::send_all(lane_end &end, time now) {
  while (end.session && end.session->welcomed()) {
    const auto *what = end.queue.next(now);
    if (what == nullptr)
      return;
    const link_header header{.kind = link_kind::payload,
                             .where = end.where,
                             .session = end.session->number(),
                             .number = end.queue.number(),
                             .id = what->id,
                             .asked_for = what->asked_for};
    if (!end.session->send(header, what->parts))
      return drop(end, now, fmt::format("process '{}': the connection is gone", to_.process));
    hub_counters::add(core_.counters.messages_sent);
    hub_counters::add(core_.counters.bytes_sent, what->bytes);
  }
}

void link::heartbeat(time now) {
  if (!control_.session || !control_.session->welcomed())
    return;
  beat_ = now;
  told_wanted_ = data_.queue.wanted();
  const link_header header{.kind = link_kind::heartbeat,
                           .session = control_.session->number(),
                           .data_session = data_.session ? data_.session->number() : 0,
                           .data_wanted = told_wanted_};
  if (!control_.session->send(header))
    drop(control_, now, fmt::format("process '{}': the connection is gone", to_.process));
}

void link::flush(time now) {
  const auto messages = data_.queue.waiting_messages();
  const auto bytes = data_.queue.waiting_bytes();
  send_all(control_, now);
  send_all(data_, now);
  if (const auto wanted = data_.queue.wanted(); wanted != 0 && wanted != told_wanted_)
    heartbeat(now);
  publish(messages - data_.queue.waiting_messages(), bytes - data_.queue.waiting_bytes());
}

/// Tells other threads of the room that is left, after so much has left the queue.
void link::publish(std::uint64_t messages, std::uint64_t bytes) {
  room_->credit = static_cast<std::int64_t>(data_.queue.credit_left());
  room_->messages -= static_cast<std::int64_t>(messages);
  room_->queued -= static_cast<std::int64_t>(bytes);
  if (!room_->waiting || !room_->can_take() || for_good())
    return;
  room_->waiting = false;
  core_.listener.room_came(id_);
}

/// One lane: @returns when to look at it again.
link::time link::check(lane_end &end, time now) {
  const auto timeout = core_.options.limits.timeout;
  const bool control = end.where == lane::control;
  const bool needed = control || (state_ == link_state::up && data_wanted_);
  if (end.session && !end.session->welcomed() && now >= end.session->heard() + timeout)
    drop(end, now, fmt::format("process '{}' at '{}' does not answer", to_.process, to_.endpoint));
  if (const auto deadline = end.queue.deadline(); end.session && deadline && now >= *deadline) {
    log::warn("link to {}: {} bytes did not arrive in time (link.timeout, link.min_rate); sending "
              "them again",
              to_.process, end.queue.bytes());
    drop(end, now, "a message did not arrive in time");
  }
  if (!end.session && needed && now >= end.retry_at && !for_good())
    connect(end, now);
  if (!end.session)
    return needed ? end.retry_at : time::max();
  const auto alive =
      control || !end.session->welcomed() ? end.session->heard() + timeout : time::max();
  return std::min(alive, end.queue.deadline().value_or(time::max()));
}

link::time link::tick(time now) {
  if (for_good())
    return time::max();
  const auto timeout = core_.options.limits.timeout;
  if (control_.session && control_.session->welcomed() &&
      now >= control_.session->heard() + timeout) {
    const auto why = fmt::format("process '{}' was silent for {} ms", to_.process, timeout.count());
    if (data_.session)
      drop(data_, now, why);
    drop(control_, now, why);
  }
  if (control_.session && control_.session->welcomed() && now >= beat_ + timeout / 4)
    heartbeat(now);
  auto due = std::min(check(control_, now), check(data_, now));
  if (control_.session && control_.session->welcomed())
    due = std::min(due, beat_ + timeout / 4);
  return due;
}

} // namespace millrace
