// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "actors/node/host_messages.hpp"
#include "runtime/result.hpp"

namespace millrace {

struct directory_options {
  std::string run;
  std::uint64_t incarnation = 0; ///< of the directory
  /// A process that is not heard of for so long is gone.
  std::chrono::milliseconds lease{10'000};
  /// A process that has ended is shown for so long.
  std::chrono::milliseconds keep{std::chrono::hours(1)};
};

/// What the directory knows: the newest incarnation of every process of the run. No sockets and no
/// clock: times come in, and never fall. Not thread-safe: its actor owns it.
///
///             alive                drain            its own news say so
///   (nobody) -------> alive -----------------> draining <------------- alive
///                      |  ^ alive, same             |
///        lease ran out v  | incarnation             v lease ran out
///                      gone --------------------> gone
///   alive, draining or gone -- leaves --> left: the end of that incarnation
///   any -- alive with a larger incarnation --> alive; the older one is told of as gone
class directory_table {
public:
  using time_point = std::chrono::steady_clock::time_point;

  directory_table(directory_options options, time_point now);

  enum class registration : std::uint8_t {
    added,      ///< not known before, a new incarnation, or back from gone: send it view()
    renewed,    ///< known
    superseded, ///< a larger incarnation has the name, or this one has left: it is to end
    given_up    ///< others took it for lost, and do its work: it is to start again
  };
  /// Registers a process or renews its lease. The caller has checked that the news are of the
  /// process that sent them.
  /// Errors: bad_value (no name, two actors of one name), conflict (another process has an actor of
  /// that name).
  result<registration> alive(time_point now, process_alive news);

  /// Ended in good order. News of another incarnation change nothing.
  void leaves(time_point now, const process_leaves &news);

  /// A process has given up on this incarnation. News of another one change nothing.
  void lost(const process_lost &news);

  /// Marks the process of that name, or with an actor of that name, as draining, and gives it: it
  /// is to be told. One that drains already is given again.
  /// Errors: not_found (with the nearest name), unsupported (one of its actors cannot be replaced),
  /// conflict (it has ended; or it has the last actor of a role).
  result<process_entry> drain(std::string_view name);

  /// Those whose lease has run out, now gone. To be called several times per lease. Nobody is gone
  /// for one lease after the start; nor for one lease after half of one without any call: then it
  /// was this process that stood still, and news may wait to be read.
  std::vector<process_entry> expire(time_point now);

  /// What is new or has changed since the last call. Each view is small enough for a control
  /// message: at most view_entries, of about view_bytes.
  std::vector<directory_view> changes();
  /// All that is known, for a process that knows nothing.
  std::vector<directory_view> view() const;

  status_answer answer(time_point now) const;

  static constexpr std::size_t view_entries = 100;
  static constexpr std::size_t view_bytes = 32 << 10;

private:
  struct line {
    process_entry entry;
    process_status status;
    time_point registered; ///< this incarnation
    time_point renewed;    ///< last news
    time_point ended;      ///< left or gone
    bool given_up = false; ///< by somebody who has lost its link, too
  };
  using lines = std::map<std::string, line, std::less<>>;

  status check(const process_entry &entry) const;
  void touch(time_point now);
  void renew(time_point now, line &known, process_alive news);
  /// Notes a change of a line, and who owns the names of its actors from now on.
  void changed(const line &known);
  void end(time_point now, line &known, process_state state);
  line *find(std::string_view name);
  tl::unexpected<error> unknown(std::string_view name) const;
  status may_leave(const line &leaving) const;
  std::vector<directory_view> chunks(std::vector<process_entry> entries) const;

  directory_options options_;
  time_point seen_;  ///< of the last call
  time_point awake_; ///< since then no two calls were half a lease apart
  std::map<std::string, line, std::less<>> lines_;         ///< by process
  std::map<std::string, std::string, std::less<>> owners_; ///< actor to process, of those not ended
  std::set<std::string, std::less<>> changed_;             ///< names of processes
  std::vector<process_entry> replaced_;                    ///< older incarnations, not told of yet
};

} // namespace millrace
