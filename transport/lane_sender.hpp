// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

#include "runtime/frame.hpp"
#include "runtime/result.hpp"

namespace millrace {

/// Bytes of all parts.
std::uint64_t bytes_of(const message &parts) noexcept;

/// A message on its way.
struct outgoing {
  message parts{};
  std::uint64_t bytes = 0;
  bool asked_for = false;
  std::uint64_t place = 0; ///< in the order of push()
  std::uint64_t id = 0;    ///< place in the lane, from its first sending on
  std::chrono::steady_clock::time_point deadline{}; ///< to be received by
};

/// The sending side of one lane: what waits, and what was sent and is not received yet. A message
/// gets its id when it is first sent; in a new session all that was not received is sent again in
/// the order of ids. Waiting messages leave in the order of push(), but one that was asked for does
/// not wait for those that lack credit: the asker may hold memory until it has its answer.
/// Knows no sockets. Thread: one.
///
///     push() -> waiting -> next(): sent -> received(): gone
///                            ^                |
///                            +- begin(): the session is a new one
class lane_sender {
public:
  using time = std::chrono::steady_clock::time_point;

  /// How long a message may take: so many bytes as are on the way with it over min_rate, plus
  /// timeout.
  struct pace {
    std::chrono::milliseconds timeout{10'000};
    std::uint64_t min_rate = 1 << 20; ///< bytes/s
  };

  /// @param credited false: the lane has no credit, everything leaves at once.
  lane_sender(bool credited, pace allowed) noexcept : credited_(credited), pace_(allowed) {}

  void push(message parts, bool asked_for);

  /// A session begins in which the peer has received all up to id `received` and gives `credit`.
  /// Errors: conflict if that cannot be: the peer has forgotten what it received, or never got.
  status begin(std::uint64_t received, std::uint64_t credit);
  /// Nothing leaves until the next begin().
  void end() noexcept { open_ = false; }

  /// Errors: conflict: an id that was never sent.
  status received(std::uint64_t id);
  /// Absolute in this session. Never takes back.
  void credit(std::uint64_t bytes) noexcept { credit_ = credit_ > bytes ? credit_ : bytes; }

  /// The message to be sent now, with `number()` as its place in the session; null if there is
  /// none, or it lacks credit. Valid until the next call of a member function that is not const.
  const outgoing *next(time now);
  /// Of the message that next() gave last.
  std::uint64_t number() const noexcept { return number_; }

  /// Credit to ask for, absolute in this session: what the next message lacks. 0 if none waits, or
  /// if more than its size is on the way with credit: the arrival of that may bring it unasked.
  std::uint64_t wanted() const noexcept;
  /// Credit not used yet. Unit: bytes.
  std::uint64_t credit_left() const noexcept { return open_ ? credit_ - used_ : 0; }
  /// When the session is too late; nothing is on the way: none.
  std::optional<time> deadline() const;
  /// What was pushed and never sent, and needs credit.
  std::uint64_t waiting_messages() const noexcept { return waiting_.size(); }
  std::uint64_t waiting_bytes() const noexcept { return waiting_bytes_; }
  /// How much was pushed and not received.
  std::uint64_t messages() const noexcept { return sent_.size() + waiting_.size() + asked_.size(); }
  std::uint64_t bytes() const noexcept { return bytes_; }

private:
  const outgoing *send_again(time now);
  std::deque<outgoing> *next_queue() noexcept;
  bool may_send(const outgoing &what) const noexcept;
  void account(outgoing &what, time now);

  const bool credited_;
  const pace pace_;
  bool open_ = false;
  bool begun_ = false;        ///< there was a session
  std::deque<outgoing> sent_; ///< ids first_ to first_ + size - 1
  std::uint64_t first_ = 1;   ///< smallest id that was not received
  std::size_t again_ = 0;     ///< how many of `sent_` were sent in this session
  std::deque<outgoing> waiting_, asked_;
  std::uint64_t number_ = 0; ///< of the last message of this session
  std::uint64_t credit_ = 0, used_ = 0;
  std::uint64_t spent_ = 0; ///< of used_: not received
  std::uint64_t pushed_ = 0;
  std::uint64_t waiting_bytes_ = 0;
  std::uint64_t bytes_ = 0, on_the_way_ = 0; ///< on_the_way_: sent in this session, not received
};

} // namespace millrace
