// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "actors/node/post.hpp"

namespace millrace {

/// From a host to itself: renew the lease, look after links.
struct host_tick {};

/// From the host to the supervisor: the run is over for this process, by order (`failure` may be
/// empty) or since somebody is gone without whom it cannot go on.
struct run_over {
  std::string failure;
  bool restart = false; ///< the run goes on: this process is to be started again
  bool ordered = false; ///< the planner's process, or a drain, said so
  bool drained = false; ///< the run goes on without this process
};

/// From the supervisor to the host, before its end: send this to the planner's process, and take
/// leave of the directory. Answered by has_left.
struct leave_run {
  process_report report;
  bool run_is_over = false; ///< what is still on its way to others is of no use
};

struct has_left {};

/// From the supervisor of the planner's process to the host: end all other processes, sources
/// first. Answered by others_ended to the supervisor.
struct end_others {
  std::string failure; ///< empty after a good end
};
struct others_ended {
  std::vector<process_report> reports;
};

struct host_options {
  process_entry entry;           ///< of this process; the endpoint is filled in
  std::string directory_process; ///< name under which the directory's process is known here
  std::string directory_endpoint;
  std::string directory_key; ///< public CURVE key; empty without CURVE
  std::chrono::milliseconds lease{10'000};
  std::function<process_status()> status;
  bool has_directory = false; ///< in this process
  /// How long a planner, an env reader or a trainer that is gone may take to be started again.
  std::chrono::milliseconds patience_for_restart{0};
  /// Groups of readers here of which something is only in the journal of this assembler.
  std::function<std::uint64_t(const std::string &assembler)> pinned{};
};

/// A process as an actor: registers it, tells its stages who comes and goes, ends it.
///
/// Another process:
///
///     (unknown) --view--> up --view: draining--> draining
///                          |                        |
///                          +--left, replaced, or gone and its link is down--> down
///
/// One that the directory holds for gone and whose link still works stays up: only the way to the
/// directory is broken. One whose link is down and that the directory still holds for alive stays,
/// too: what is sent to it waits.
class host : public stage_actor {
public:
  host(caf::actor_config &config, const actor_context &context, host_options options,
       std::shared_ptr<post> office, std::vector<contact> contacts, caf::actor directory,
       caf::actor supervisor);

  caf::behavior make_behavior() override;
  void on_exit() override;

private:
  using clock = std::chrono::steady_clock;

  struct neighbour {
    process_entry entry;
    link_state link = link_state::down;
    clock::time_point link_since;   ///< of `link`
    std::uint64_t confirmed_by = 0; ///< incarnation of the directory that spoke of it last
    bool said_gone = false;         ///< by the directory
    bool draining = false;
    bool reported = false;                 ///< to this process: it has the planner
    std::optional<clock::time_point> left; ///< the directory said so then
  };

  void take_mail(const host_mail &in);
  void take_link(const link_event &in);
  void tick(const host_tick &);
  void take_hunger(const hunger &in);
  void finish(const drain &);
  void take_drained(const drained &in);
  has_left leave(const leave_run &in);
  void end_all(const end_others &in);
  void take_report(const process_identity &from, const process_report &in);
  void see_off(neighbour &one);
  void end_next_stage();

  void take_view(const directory_view &view);
  void take_entry(const process_entry &entry);
  void bring_up(const process_entry &entry);
  void bring_down(const std::string &process, const std::string &why);
  void lose(const std::string &process, const std::string &why);
  void to_directory(const host_parcel &what);
  void start_draining(neighbour &one);
  void probe(neighbour &one);
  void renew();
  void lose_all_sight(clock::time_point now);
  void miss_directory(clock::time_point now);
  template <class Event> void tell_stages(role what, const Event &event, bool loss);
  bool essential(role what) const;
  bool essential(const process_entry &entry) const;
  std::uint64_t pinned_to(const process_entry &entry) const;
  void miss(const process_entry &entry, const std::string &why);
  void end_if_missed_too_long(clock::time_point now);
  bool plans() const;

  host_options options_;
  std::shared_ptr<post> office_;
  std::vector<contact> contacts_;
  caf::actor directory_;
  caf::actor supervisor_;
  std::map<std::string, neighbour> neighbours_; ///< other processes that are up or draining
  std::map<std::string, std::uint64_t> ended_;  ///< newest incarnation that is down, by process
  struct absence {
    clock::time_point since;
    std::string why;
    process_entry entry;
  };
  std::map<std::string, absence> missing_; ///< by process: the run waits for it to be started again
  std::map<std::string, absence> unmissed_; ///< gone, and not waited for, as far as is known here
  std::uint64_t directory_incarnation_ = 0;
  clock::time_point directory_since_{}; ///< first view of that incarnation
  link_state directory_link_ = link_state::down;
  clock::time_point directory_link_since_ = clock::now();
  std::chrono::milliseconds patience_{0}; ///< until the next line about a missing directory
  std::set<std::string> not_drained_;     ///< actors that still have work
  bool draining_ = false;
  bool over_ = false;
  bool hungry_ = false;

  bool left_ = false;
  std::size_t next_stage_ = 0;
  bool ending_ = false; ///< end_others has come
  std::string failure_;
  std::set<std::string> ending_now_; ///< processes that were told to end and have not answered
  std::vector<process_report> reports_;
};

} // namespace millrace

MILLRACE_MESSAGE(millrace::host_tick)
MILLRACE_MESSAGE(millrace::run_over)
MILLRACE_MESSAGE(millrace::leave_run)
MILLRACE_MESSAGE(millrace::has_left)
MILLRACE_MESSAGE(millrace::end_others)
MILLRACE_MESSAGE(millrace::others_ended)
