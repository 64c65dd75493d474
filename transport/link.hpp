// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "runtime/random.hpp"
#include "transport/dealer_session.hpp"
#include "transport/hub.hpp"
#include "transport/hub_counters.hpp"
#include "transport/lane_sender.hpp"

namespace millrace {

/// What other threads see of a link's data lane. Thread: any.
struct link_room {
  std::atomic<std::int64_t> credit{0};   ///< bytes; not used yet
  std::atomic<std::int64_t> queued{0};   ///< bytes that wait for credit
  std::atomic<std::int64_t> messages{0}; ///< that wait for credit
  std::atomic<bool> waiting{false};      ///< somebody was told that there is no room
  std::atomic<bool> used{false};         ///< somebody asked: the data session is to be opened

  bool can_take() const noexcept { return messages == 0 || credit > queued; }
};

/// What the parts of a hub share. Thread: the hub's.
struct hub_core {
  hub_options options;
  hub_listener &listener;
  zmq::context_t context;
  hub_counters counters;
  random_source random;

  std::uint64_t new_session() noexcept { return random.next() | 1; }
};

/// One peer process, from the side that sends: two lanes, each with at most one session.
///
///     down --welcome--> up --lost, late--> down      a lost session is tried again, with back-off
///       |                |
///       +--- refused, replaced ---> for good: nothing is sent any more
///
/// Thread: the hub's.
class link {
public:
  using time = std::chrono::steady_clock::time_point;

  link(hub_core &core, link_id id, link_target to, std::shared_ptr<link_room> room);
  link(const link &) = delete;
  link &operator=(const link &) = delete;
  ~link();

  void push(lane where, message parts, bool asked_for);
  /// Somebody wants to know the room: opens the data session before the first message.
  void open_data() noexcept { data_wanted_ = true; }

  /// Reads what came on the sockets.
  void read(time now);
  /// Sends what may be sent.
  void flush(time now);
  /// Renews what is late, retries, says that this side lives. @returns when it must be called
  /// again.
  time tick(time now);

  /// Ended for good, or everything was received.
  bool settled() const noexcept { return for_good() || left().messages == 0; }
  undelivered left() const;
  const link_target &target() const noexcept { return to_; }

  /// Null without a session.
  dealer_session *session(lane where) noexcept;
  /// A socket has something to be read now.
  bool has_input();

private:
  struct lane_end {
    lane_end(lane which, bool credited, lane_sender::pace pace)
        : where(which), queue(credited, pace) {}

    const lane where;
    lane_sender queue;
    std::optional<dealer_session> session{};
    int tries = 0; ///< since a session was welcomed
    time retry_at{};
  };

  bool for_good() const noexcept {
    return state_ == link_state::refused || state_ == link_state::replaced;
  }
  lane_end &end_of(lane where) noexcept { return where == lane::control ? control_ : data_; }
  void read(lane_end &end, time now);
  void take(lane_end &end, const link_header &in, time now);
  void welcome(lane_end &end, const link_header &in, time now);
  void take_answers(const link_header &in, time now);
  bool is_same(const process_identity &who);
  void connect(lane_end &end, time now);
  void drop(lane_end &end, time now, const std::string &why);
  void send_all(lane_end &end, time now);
  void heartbeat(time now);
  time check(lane_end &end, time now);
  void change(link_state to, const std::string &why);
  void finish(link_state to, const std::string &why);
  void publish(std::uint64_t messages, std::uint64_t bytes);

  hub_core &core_;
  const link_id id_;
  link_target to_;
  const std::shared_ptr<link_room> room_;
  link_state state_ = link_state::down;
  bool told_ = false; ///< why it is down
  bool data_wanted_ = false;
  lane_end control_, data_;
  time beat_{};                   ///< last heartbeat
  std::uint64_t told_wanted_ = 0; ///< credit asked for last
};

} // namespace millrace
