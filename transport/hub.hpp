// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/frame.hpp"
#include "runtime/result.hpp"
#include "transport/curve.hpp"

namespace millrace {

/// Who a process is: what it says of itself at hello.
struct process_identity {
  std::string run;                ///< run.id: both ends must agree
  std::string process;            ///< one name per run, for example "scorer-1"
  std::vector<std::string> roles; ///< of its actors
  std::uint64_t incarnation = 0;  ///< larger for a later start under the same name
  std::string program;            ///< program version, for people
  std::string config;             ///< digest of what all processes must agree on, hex
  /// Of a planner: id of its state folder, hex. A later start must have the same.
  std::string folder{};
};

/// The two lanes of a link, each with a session of its own. Each is in order, but that a message
/// that was asked for passes those that wait for credit; between the lanes there is no order.
enum class lane : std::uint8_t {
  control, ///< small messages that must never wait for credit: at most link_limits::control_bytes
  data     ///< everything else; waits for credit, unless it was asked for
};

struct link_limits {
  /// Key: link.timeout. A peer whose control session is silent for so long is late: its sessions
  /// are renewed.
  std::chrono::milliseconds timeout{10'000};
  /// Key: link.min_rate. Unit: bytes/s. A data session is renewed when a message takes longer than
  /// its size over this, plus timeout.
  std::uint64_t min_rate = 1 << 20;
  std::size_t control_bytes = 64 << 10;   ///< of one control message
  std::size_t part_bytes = 1 << 30;       ///< of one part; libzmq refuses larger ones unread
  std::size_t parts = 1 << 16;            ///< of one message
  std::size_t window_bytes = 32 << 20;    ///< largest credit granted ahead of need, per peer
  std::chrono::milliseconds back_off{50}; ///< before the second try; doubled up to timeout
};

struct hub_options {
  /// "tcp://127.0.0.1:*", "tcp://[::1]:*", "tcp://0.0.0.0:7000", "ipc:///run/x.sock". A free port
  /// is bound, not probed.
  std::string bind;
  /// Host that others reach this process by; empty: that of `bind`, or of the machine if `bind` is
  /// a wildcard.
  std::string advertise;
  process_identity self;
  link_limits limits;
  std::shared_ptr<memory_meter> memory; ///< received frames count in it; `held` is read from it
  std::uint64_t memory_limit = 0;       ///< bytes held above which no credit is granted
  bool insecure = false;                ///< bind another address than loopback without keys
  std::optional<curve_config> curve;
};

/// A process to talk to.
struct link_target {
  std::string process{};
  std::uint64_t incarnation = 0; ///< 0: whichever answers under that name
  std::string endpoint{};
  std::string key{}; ///< its public CURVE key (Z85); empty without CURVE
};

using link_id = std::uint32_t;
/// Whom an answer goes to. Valid until it was answered or its session ended.
using request_id = std::uint64_t;

enum class link_state : std::uint8_t {
  down,    ///< no session yet, or lost: it is tried again
  up,      ///< welcomed
  refused, ///< for good: `why` says what the peer said (superseded, another run, not allowed)
  replaced ///< for good: another incarnation answers under that name
};

/// What a hub tells its owner. Called on the hub's thread, perhaps before start() has returned:
/// must not block, must not call stop() or destroy the hub.
class hub_listener {
public:
  virtual ~hub_listener() = default;
  /// A message of a link, in the order of its lane, once. The frames own their bytes.
  virtual void received(const process_identity &from, message parts) = 0;
  /// A question of a tool (transport/client.hpp): answer it with hub::answer.
  virtual void asked(request_id request, message parts) = 0;
  virtual void link_changed(link_id link, link_state state, const std::string &why) = 0;
  /// can_take() of a link was false when somebody asked, and is true now.
  virtual void room_came(link_id link) = 0;
};

/// What a hub has counted since its start.
struct hub_stats {
  std::uint64_t messages_sent = 0, messages_received = 0;
  std::uint64_t bytes_sent = 0, bytes_received = 0; ///< of parts after the link header
  std::uint64_t repeats = 0;          ///< messages that came again after a cut, and were dropped
  std::uint64_t garbage = 0;          ///< messages that no session could have sent
  std::uint64_t refusals = 0;         ///< hellos refused
  std::uint64_t auth_failures = 0;    ///< wrong or unknown CURVE keys
  std::uint64_t sessions = 0;         ///< made by this side; more than two for each link: renewed
  std::uint64_t over_limit_bytes = 0; ///< credit granted beyond the limit, since the run was hungry
  std::uint64_t granted_bytes = 0;    ///< credit granted and not used yet
  std::uint64_t in_flight_bytes = 0;  ///< queued or sent, and not received
};

/// What a link did not deliver.
struct undelivered {
  std::string process;
  std::uint64_t messages = 0;
  std::uint64_t bytes = 0;
};

/// All sockets of a process, in one plain thread. Delivers each message of a link once and in the
/// order of its lane as long as the peer's incarnation lives, over any number of sessions.
/// Thread: every member function may be called from any thread.
class hub {
public:
  /// Errors: bad_argument (an endpoint that is none, an address that needs keys), io (bind).
  static result<std::unique_ptr<hub>> start(hub_options options, hub_listener &listener);
  /// stop() with no time.
  ~hub();
  hub(const hub &) = delete;
  hub &operator=(const hub &) = delete;

  /// Where others reach this process: the bound port, a host that is not a wildcard.
  const std::string &endpoint() const noexcept;

  /// Precondition: no other link to this incarnation of the process is open.
  link_id open(link_target target);
  /// What was not delivered is dropped: the caller knows that the peer is gone.
  void close(link_id link);

  /// Queues a message; sending copies nothing. `asked_for`: the peer has asked for it, it needs no
  /// credit. Precondition: a control message is within control_bytes. Ignored after close().
  void send(link_id link, lane where, message parts, bool asked_for = false);

  /// True if a data message would leave at once, or nothing is queued: a source that only sends
  /// then has at most one message waiting for credit.
  bool can_take(link_id link) const;
  /// Unit: bytes. Credit left, less what is queued; may be negative. A link that has sent no data
  /// gets credit, and room, when it is asked for the first time.
  std::int64_t room(link_id link) const;

  /// Exactly one answer for each request; too late ones are ignored. One that is too large for the
  /// limits tells the asker so.
  void answer(request_id request, message parts);

  /// While hungry, credit is given beyond the limit, one message at a time.
  void set_hungry(bool hungry);

  hub_stats stats() const;

  /// Sends what is queued until everything is received or the deadline has passed, then closes all.
  /// @returns what was left. Later calls return nothing.
  std::vector<undelivered> stop(std::chrono::milliseconds deadline);

private:
  class thread;
  explicit hub(std::unique_ptr<thread> impl);
  std::unique_ptr<thread> thread_;
};

} // namespace millrace
