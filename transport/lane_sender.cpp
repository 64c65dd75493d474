// SPDX-License-Identifier: Apache-2.0
#include "transport/lane_sender.hpp"

#include <utility>

namespace millrace {

std::uint64_t bytes_of(const message &parts) noexcept {
  std::uint64_t sum = 0;
  for (const auto &part : parts)
    sum += part.size();
  return sum;
}

void lane_sender::push(message parts, bool asked_for) {
  outgoing what{.parts = std::move(parts)};
  what.bytes = bytes_of(what.parts);
  what.asked_for = asked_for || !credited_;
  what.place = ++pushed_;
  bytes_ += what.bytes;
  if (!what.asked_for)
    waiting_bytes_ += what.bytes;
  (what.asked_for ? asked_ : waiting_).push_back(std::move(what));
}

status lane_sender::begin(std::uint64_t received_id, std::uint64_t credit) {
  if (!begun_)
    first_ = received_id + 1; // an earlier link to this peer may have used ids
  begun_ = true;
  if (received_id + 1 < first_)
    return fail(errc::conflict, "it received up to {} and says {}: it has forgotten this process",
                first_ - 1, received_id);
  number_ = again_ = 0;
  used_ = spent_ = on_the_way_ = 0;
  credit_ = credit;
  open_ = true;
  return received(received_id);
}

status lane_sender::received(std::uint64_t id) {
  if (id >= first_ + sent_.size())
    return fail(errc::conflict, "it says that it received {}, the last one sent was {}", id,
                first_ + sent_.size() - 1);
  for (; first_ <= id; ++first_) {
    bytes_ -= sent_.front().bytes;
    if (again_ > 0) { // else it was received in an earlier session
      on_the_way_ -= sent_.front().bytes;
      spent_ -= sent_.front().asked_for ? 0 : sent_.front().bytes;
      --again_;
    }
    sent_.pop_front();
  }
  return {};
}

bool lane_sender::may_send(const outgoing &what) const noexcept {
  return what.asked_for || credit_ - used_ >= what.bytes;
}

void lane_sender::account(outgoing &what, time now) {
  ++number_;
  ++again_;
  if (!what.asked_for) {
    used_ += what.bytes;
    spent_ += what.bytes;
  }
  on_the_way_ += what.bytes;
  what.deadline =
      now + pace_.timeout + std::chrono::milliseconds(on_the_way_ * 1000 / pace_.min_rate);
}

const outgoing *lane_sender::send_again(time now) {
  auto &what = sent_[again_];
  if (!may_send(what))
    return nullptr;
  account(what, now);
  return &what;
}

std::deque<outgoing> *lane_sender::next_queue() noexcept {
  const bool credited = !waiting_.empty() && may_send(waiting_.front());
  if (!credited)
    return asked_.empty() ? nullptr : &asked_;
  return !asked_.empty() && asked_.front().place < waiting_.front().place ? &asked_ : &waiting_;
}

const outgoing *lane_sender::next(time now) {
  if (!open_)
    return nullptr;
  if (again_ < sent_.size())
    return send_again(now);
  auto *from = next_queue();
  if (from == nullptr)
    return nullptr;
  sent_.push_back(std::move(from->front()));
  from->pop_front();
  auto &what = sent_.back();
  if (!what.asked_for)
    waiting_bytes_ -= what.bytes;
  what.id = first_ + sent_.size() - 1;
  account(what, now);
  return &what;
}

std::uint64_t lane_sender::wanted() const noexcept {
  if (!open_)
    return 0;
  const outgoing *what = again_ < sent_.size() ? &sent_[again_]
                         : waiting_.empty()    ? nullptr
                                               : &waiting_.front();
  const bool asks = what != nullptr && !may_send(*what) && spent_ <= what->bytes;
  return asks ? used_ + what->bytes : 0;
}

std::optional<lane_sender::time> lane_sender::deadline() const {
  if (!open_ || again_ == 0)
    return std::nullopt;
  return sent_.front().deadline;
}

} // namespace millrace
