// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <variant>
#include <vector>

#include <poll.h>

#include "transport/gatekeeper.hpp"
#include "transport/hub.hpp"
#include "transport/inbox.hpp"
#include "transport/link.hpp"
#include "transport/parts.hpp"

namespace millrace {

/// What stands behind a hub: the thread that owns all sockets, and the commands that others leave
/// for it. One turn of the thread: commands, what has come, what may leave, timers, answers.
/// Thread: run() and what it calls is the thread itself; the rest is called by any.
class hub::thread {
public:
  static result<std::unique_ptr<thread>> start(hub_options options, hub_listener &listener);
  thread(const thread &) = delete;
  thread &operator=(const thread &) = delete;
  ~thread();

  const std::string &endpoint() const noexcept { return inbox_->reached_at(); }
  link_id open(link_target target);
  void close(link_id link);
  void send(link_id link, lane where, message parts, bool asked_for);
  std::shared_ptr<link_room> room_of(link_id link) const;
  void open_data(link_id link) { post(open_data_lane{link}); }
  void answer(request_id request, message parts);
  void set_hungry(bool hungry) { post(hunger{hungry}); }
  hub_stats stats() const noexcept { return core_.counters.read(); }
  std::vector<undelivered> stop(std::chrono::milliseconds deadline);

private:
  using time = std::chrono::steady_clock::time_point;

  struct open_link {
    link_id id;
    link_target target;
    std::shared_ptr<link_room> room;
  };
  struct close_link {
    link_id id;
  };
  struct open_data_lane {
    link_id id;
  };
  struct send_message {
    link_id id;
    lane where;
    message parts;
    bool asked_for;
  };
  struct answer_request {
    request_id id;
    message parts;
  };
  struct hunger {
    bool hungry;
  };
  struct stop_by {
    time deadline;
  };
  using command = std::variant<open_link, close_link, open_data_lane, send_message, answer_request,
                               hunger, stop_by>;

  /// A link, and what the loop knows of it.
  struct entry {
    std::unique_ptr<link> what;
    bool dirty = true; ///< something happened to it in this turn
    time due{};
  };

  thread(hub_options options, hub_listener &listener);
  void post(command what);
  void run();
  void poll();
  int patience(time now) const;
  void turn(time now);
  void run_commands();
  void take(open_link &what);
  void take(close_link &what);
  void take(open_data_lane &what);
  void take(send_message &what);
  void take(answer_request &what) { inbox_->answer(what.id, what.parts); }
  void take(hunger &what) { inbox_->set_hungry(what.hungry); }
  void take(stop_by &what) { stop_by_ = what.deadline; }
  bool finished(time now) const;
  void shut_down();

  std::shared_ptr<waker> wake_ = std::make_shared<waker>();
  hub_core core_;
  std::optional<gatekeeper> gatekeeper_;
  std::unique_ptr<inbox> inbox_;

  mutable std::mutex mutex_; // of the next four
  std::vector<command> commands_;
  std::unordered_map<link_id, std::shared_ptr<link_room>> rooms_;
  link_id last_link_ = 0;
  bool stopped_ = false;

  // The thread's own.
  std::map<link_id, entry> links_;
  time due_{};
  std::vector<pollfd> polled_;
  std::optional<time> stop_by_;
  std::vector<undelivered> left_; ///< read by others after the thread has ended
  std::thread runs_;
};

} // namespace millrace
