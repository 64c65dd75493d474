// SPDX-License-Identifier: Apache-2.0
// The part of the inbox that knows senders: who is let in, what they may send, what they are told.
#include <algorithm>
#include <utility>

#include "runtime/log.hpp"
#include "transport/inbox.hpp"

namespace millrace {

namespace {

constexpr std::size_t most_senders = 4096; // whose last message is known
constexpr std::chrono::milliseconds memory_poll{10};
// An answer costs as much as a small message; what is not answered, the sender keeps.
constexpr std::uint64_t answer_at_bytes = 4 << 20;
constexpr std::chrono::milliseconds answer_within{2};
constexpr std::chrono::seconds between_warnings{10};

std::size_t index(lane where) noexcept { return static_cast<std::size_t>(where); }

std::string joined(const std::vector<std::string> &names) { // fmt::join makes GCC 12 warn falsely
  std::string out;
  for (const auto &name : names)
    out.append(out.empty() ? "" : ",").append(name);
  return out;
}

} // namespace

void inbox::take_hello(const std::string &route, const link_header &in, const std::string &key,
                       time now) {
  if (const auto at = routes_.find(route); at != routes_.end()) // its session before this one
    end(*at->second.first, at->second.second);
  const auto no = judge(*in.identity, in.where, key);
  if (!no.reason.empty()) {
    hub_counters::add(core_.counters.refusals);
    log_.warn(fmt::format("process '{}' is refused: {}", in.identity->process, no.reason));
    return refuse(route, in.session, no.reason, no.for_good);
  }
  auto &from = record(*in.identity, now);
  end(from, in.where);
  from.sessions[index(in.where)] = {route, in.session};
  from.lanes[index(in.where)].begin_session();
  routes_[route] = {&from, in.where};
  if (in.where == lane::data) {
    budget_.add(from.key, std::exchange(from.carried, {}));
    grant(now); // so that the welcome carries credit
  }
  welcome(from, in.where, now);
}

/// Whether a process may come in.
inbox::judgement inbox::judge(const process_identity &who, lane where,
                              const std::string &key) const {
  const auto &self = core_.options.self;
  const auto &curve = core_.options.curve;
  if (curve && !allows(*curve, key, who.process, who.roles))
    return {fmt::format("its key may not be process '{}' with roles '{}'; see the `allowed` file",
                        who.process, joined(who.roles)),
            true};
  if (who.run != self.run)
    return {fmt::format("this is run '{}', it belongs to run '{}'", self.run, who.run), true};
  if (who.config != self.config)
    return {fmt::format("its config differs: digest '{}' here, '{}' there; start all processes "
                        "with one config",
                        self.config, who.config),
            true};
  return judge_known(who, where);
}

inbox::judgement inbox::judge_known(const process_identity &who, lane where) const {
  const auto at = senders_.find(who.process);
  const auto known = at == senders_.end() ? 0 : at->second.who.incarnation;
  if (at != senders_.end() && at->second.who.folder != who.folder)
    return {fmt::format("another '{}' leads this run, with state folder {}, not {}: end one of "
                        "them, or give the runs different ids (run.id)",
                        who.process, at->second.who.folder, who.folder),
            true};
  if (at != senders_.end() && who.incarnation < known)
    return {fmt::format("superseded: incarnation {} of it came after {}", known, who.incarnation),
            true};
  const bool control = at != senders_.end() && who.incarnation == known &&
                       at->second.sessions[index(lane::control)].number != 0;
  if (where == lane::data && !control)
    return {"a data session needs a control session", false};
  return {};
}

/// What is known of this incarnation. A larger one takes the place of the one before it.
sender &inbox::record(const process_identity &who, time now) {
  auto at = senders_.find(who.process);
  if (at != senders_.end() && at->second.who.incarnation == who.incarnation) {
    at->second.who = who;
    at->second.heard = now;
    return at->second;
  }
  if (at == senders_.end()) {
    forget_one();
    at = senders_.emplace(who.process, sender{}).first;
  } else {
    const auto why = fmt::format("superseded: incarnation {} of it came after {}", who.incarnation,
                                 at->second.who.incarnation);
    end(at->second, lane::data, why, true);
    end(at->second, lane::control, why, true);
    by_key_.erase(at->second.key);
    std::erase(due_, &at->second);
  }
  at->second = sender{.who = who, .key = ++last_key_};
  at->second.heard = now;
  at->second.held = std::make_shared<arrivals>();
  at->second.held->meter = core_.options.memory;
  at->second.held->wake = wake_;
  at->second.held->starving = starving_;
  by_key_[last_key_] = &at->second;
  return at->second;
}

/// Makes room for another sender: the one without a session that was heard longest ago goes.
void inbox::forget_one() {
  if (senders_.size() < most_senders)
    return;
  auto oldest = senders_.end();
  for (auto at = senders_.begin(); at != senders_.end(); ++at) {
    const auto &sessions = at->second.sessions;
    if (sessions[0].number == 0 && sessions[1].number == 0 &&
        (oldest == senders_.end() || at->second.heard < oldest->second.heard))
      oldest = at;
  }
  if (oldest == senders_.end())
    return;
  by_key_.erase(oldest->second.key);
  std::erase(due_, &oldest->second);
  senders_.erase(oldest);
}

void inbox::welcome(sender &from, lane where, time now) {
  const auto &session = from.sessions[index(where)];
  const link_header header{.kind = link_kind::welcome,
                           .where = where,
                           .session = session.number,
                           .identity = core_.options.self,
                           .control_received = from.lanes[index(lane::control)].delivered(),
                           .data_session = where == lane::data ? session.number : 0,
                           .data_received = from.lanes[index(lane::data)].delivered(),
                           .data_credit = budget_.credit(from.key)};
  if (!say(session.route, header))
    return end(from, where);
  from.answered = now;
  answer_later(from); // on the new control session: what is known of the data session
}

void inbox::refuse(const std::string &route, std::uint64_t session, const std::string &reason,
                   bool for_good) {
  const link_header header{
      .kind = link_kind::refusal, .session = session, .reason = reason, .for_good = for_good};
  say(route, header);
}

/// Ends a session without a word: the sender has a newer one, or is gone.
void inbox::end(sender &from, lane where) {
  auto &session = from.sessions[index(where)];
  if (session.number == 0)
    return;
  routes_.erase(session.route);
  session = {};
  if (where == lane::data) {
    from.carried = budget_.remove(from.key);
    grant_due_ = true;
  }
}

void inbox::end(sender &from, lane where, const std::string &reason, bool for_good) {
  const auto &session = from.sessions[index(where)];
  if (session.number == 0)
    return;
  refuse(session.route, session.number, reason, for_good);
  end(from, where);
}

void inbox::take_heartbeat(sender &from, const link_header &in) {
  const auto &data = from.sessions[index(lane::data)];
  if (in.where != lane::control || data.number == 0 || in.data_session != data.number)
    return;
  budget_.want(from.key, in.data_wanted);
  if (in.data_wanted == 0)
    return;
  grant_due_ = true;
  answer_later(from); // it may have missed what it was given
}

/// Counts a message against its sender's credit. @returns what is wrong with it; empty: nothing.
std::string inbox::take_credit(sender &from, const link_header &in, const incoming &parts) {
  if (in.where == lane::control)
    return parts.bytes <= core_.options.limits.control_bytes
               ? ""
               : fmt::format("a control message of {} bytes, at most {} are allowed", parts.bytes,
                             core_.options.limits.control_bytes);
  if (in.asked_for)
    return "";
  grant_due_ = true;
  return budget_.use(from.key, parts.bytes)
             ? ""
             : fmt::format("a message of {} bytes without credit", parts.bytes);
}

void inbox::take_message(sender &from, const link_header &in, incoming parts, time now) {
  auto &lane = from.lanes[index(in.where)];
  const auto verdict = lane.judge(in.number, in.id);
  auto wrong = verdict == lane_receiver::verdict::hole
                   ? fmt::format("a message is missing before number {}, id {}", in.number, in.id)
                   : take_credit(from, in, parts);
  if (!wrong.empty()) {
    log_.warn(fmt::format("a session of process '{}' is ended: {}", from.who.process, wrong));
    return end(from, in.where, wrong, false);
  }
  lane.take(in.id);
  answer_soon(from, parts.bytes, now);
  if (verdict == lane_receiver::verdict::repeat)
    return hub_counters::add(core_.counters.repeats);
  deliver(from, std::move(parts));
}

void inbox::deliver(sender &from, incoming in) {
  message parts;
  parts.reserve(in.parts.size());
  for (auto &part : in.parts)
    parts.push_back(take_part(std::move(part), from.held));
  hub_counters::add(core_.counters.messages_received);
  hub_counters::add(core_.counters.bytes_received, in.bytes);
  core_.listener.received(from.who, std::move(parts));
}

/// At the end of this turn.
void inbox::answer_later(sender &to) {
  if (!to.answer_due)
    due_.push_back(&to);
  to.answer_due = true;
}

/// Messages have come: one answer for many of them, unless they are large.
void inbox::answer_soon(sender &to, std::uint64_t arrived, time now) {
  to.unanswered += arrived;
  to.answer_by = std::min(to.answer_by, now + answer_within);
  if (to.unanswered >= answer_at_bytes)
    answer_later(to);
}

void inbox::send_answer(sender &to, time now) {
  to.answer_due = false;
  to.unanswered = 0;
  to.answer_by = time::max();
  const auto &control = to.sessions[index(lane::control)];
  const auto &data = to.sessions[index(lane::data)];
  if (control.number == 0)
    return; // the next welcome says it
  to.answered = now;
  const link_header header{.kind = link_kind::heartbeat,
                           .session = control.number,
                           .control_received = to.lanes[index(lane::control)].delivered(),
                           .data_session = data.number,
                           .data_received = to.lanes[index(lane::data)].delivered(),
                           .data_credit = budget_.credit(to.key)};
  if (!say(control.route, header))
    end(to, lane::control);
}

void inbox::grant(time now) {
  grant_due_ = false;
  starving_->store(budget_.starving()); // first: a frame that goes from here on wakes this thread
  const auto held_of = [this](credit_budget::sender key) {
    return by_key_.at(key)->held->held.load(std::memory_order_relaxed);
  };
  const auto held = core_.options.memory->held.load(std::memory_order_relaxed);
  for (const auto key : budget_.grant({.held = held, .held_of = held_of, .hungry = hungry_}))
    answer_later(*by_key_.at(key));
  starving_->store(budget_.starving());
  core_.counters.granted_bytes = budget_.granted();
  if (budget_.over_limit() == core_.counters.over_limit_bytes)
    return;
  core_.counters.over_limit_bytes = budget_.over_limit();
  if (now < warned_ + between_warnings && warned_ != time{})
    return;
  warned_ = now;
  log::warn("the planner is hungry: {} bytes were let in over memory.limit ({}) so far",
            budget_.over_limit(), core_.options.memory_limit);
}

void inbox::flush(time now) {
  if (grant_due_ || budget_.starving())
    grant(now);
  for (auto *to : std::exchange(due_, {}))
    send_answer(*to, now);
}

inbox::time inbox::tick(time now) {
  const auto timeout = core_.options.limits.timeout;
  auto due = budget_.starving() ? now + memory_poll : time::max();
  for (auto &[name, from] : senders_) {
    if (from.sessions[0].number == 0 && from.sessions[1].number == 0)
      continue;
    if (now >= from.heard + 3 * timeout) { // it has gone, or has renewed its sessions elsewhere
      end(from, lane::data);
      end(from, lane::control);
      from.carried = {};
      continue;
    }
    if (now >= from.answer_by || now >= from.answered + timeout / 4)
      answer_later(from);
    due = std::min(due, from.heard + 3 * timeout);
    due = std::min(due, from.answer_due ? now + timeout / 4
                                        : std::min(from.answer_by, from.answered + timeout / 4));
  }
  return due;
}

} // namespace millrace
