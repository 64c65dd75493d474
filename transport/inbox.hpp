// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "transport/credit_budget.hpp"
#include "transport/ipc_claim.hpp"
#include "transport/lane_receiver.hpp"
#include "transport/limited_log.hpp"
#include "transport/link.hpp"
#include "transport/link_header.hpp"
#include "transport/parts.hpp"
#include "transport/socket.hpp"

namespace millrace {

/// A process that sends to this one: one incarnation of it, over any number of sessions.
struct sender {
  struct session {
    std::string route{};
    std::uint64_t number = 0; ///< 0: none
  };

  process_identity who;
  credit_budget::sender key = 0;
  std::array<session, 2> sessions{}; ///< by lane
  std::array<lane_receiver, 2> lanes{};
  credit_budget::rest carried{}; ///< of the data session that ended last
  std::shared_ptr<arrivals> held{};
  std::chrono::steady_clock::time_point heard{}, answered{};
  bool answer_due = false;
  /// What came since the last answer, and by when it must be answered.
  std::uint64_t unanswered = 0;
  std::chrono::steady_clock::time_point answer_by = std::chrono::steady_clock::time_point::max();
};

/// The receiving side of a process: the ROUTER that all others send to.
/// Thread: the hub's.
class inbox {
public:
  using time = std::chrono::steady_clock::time_point;

  /// Errors: bad_argument (no endpoint, or one that needs keys), conflict (another process has the
  /// ipc path), io (bind).
  static result<std::unique_ptr<inbox>> bind(hub_core &core, std::shared_ptr<waker> wake);
  inbox(const inbox &) = delete;
  inbox &operator=(const inbox &) = delete;
  ~inbox();

  /// Where others reach it.
  const std::string &reached_at() const noexcept { return reached_at_; }
  /// For the system's poll().
  int socket_descriptor() { return descriptor_of(router_); }
  int monitor_descriptor() { return descriptor_of(monitor_.socket()); }
  void socket_is_ready() noexcept { ready_ = true; }
  /// To be asked before waiting.
  bool has_input();

  /// Takes what has come, up to an amount that keeps a turn short.
  void read(time now);
  /// Takes what the monitor tells. To be called at the start, and when its descriptor can be read.
  void read_monitor();
  /// Gives credit and sends answers.
  void flush(time now);
  /// @returns when it must be called again.
  time tick(time now);

  void answer(request_id request, const message &parts);
  void set_hungry(bool hungry) noexcept;
  /// Says what is still to be said: answers to senders, and to requests that nobody answers any
  /// more. It may still leave for so long; then the socket is closed.
  void close(time now, std::chrono::milliseconds linger);

private:
  struct asker {
    std::string route;
    std::uint64_t request = 0;
  };
  struct judgement {
    std::string reason{}; ///< empty: come in
    bool for_good = false;
  };
  using senders = std::map<std::string, sender, std::less<>>;

  inbox(hub_core &core, std::shared_ptr<waker> wake, zmq::socket_t router, socket_monitor monitor,
        std::optional<ipc_claim> claim, std::string reached_at);
  void take(incoming in, time now);
  void take_hello(const std::string &route, const link_header &in, const std::string &key,
                  time now);
  judgement judge(const process_identity &who, lane where, const std::string &key) const;
  judgement judge_known(const process_identity &who, lane where) const;
  sender &record(const process_identity &who, time now);
  void welcome(sender &from, lane where, time now);
  void take_heartbeat(sender &from, const link_header &in);
  void take_message(sender &from, const link_header &in, incoming parts, time now);
  std::string take_credit(sender &from, const link_header &in, const incoming &parts);
  void deliver(sender &from, incoming in);
  void take_request(const link_header &in, incoming parts);
  sender *sender_of(const std::string &route, const link_header &in);
  void garbage(const std::string &route, const error &why);
  void refuse(const std::string &route, std::uint64_t session, const std::string &reason,
              bool for_good);
  void end(sender &from, lane where);
  void end(sender &from, lane where, const std::string &reason, bool for_good);
  bool say(const std::string &route, const link_header &header, const message &parts = {});
  void reply(const asker &to, const message &parts, const std::string &reason);
  void send_answer(sender &to, time now);
  void close(std::chrono::milliseconds linger);
  void answer_later(sender &to);
  void answer_soon(sender &to, std::uint64_t arrived, time now);
  void grant(time now);
  void forget_one();

  hub_core &core_;
  const std::shared_ptr<waker> wake_;
  const std::shared_ptr<std::atomic<bool>> starving_;
  std::optional<ipc_claim> claim_; // goes after the socket
  zmq::socket_t router_;
  socket_monitor monitor_;
  const std::string reached_at_;

  senders senders_; ///< by process
  std::unordered_map<std::string, std::pair<sender *, lane>> routes_;
  std::vector<sender *> due_; ///< to be answered at the end of the turn
  bool ready_ = true;         ///< the socket was not found empty since it was signalled
  bool sent_ = true;          ///< since it was asked for input
  credit_budget budget_;
  std::map<credit_budget::sender, sender *> by_key_;
  credit_budget::sender last_key_ = 0;
  bool grant_due_ = false, hungry_ = false;
  time warned_{};
  std::map<request_id, asker> requests_;
  request_id last_request_ = 0;
  std::shared_ptr<arrivals> questions_;
  limited_log log_;
};

} // namespace millrace
