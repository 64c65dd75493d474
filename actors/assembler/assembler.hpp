// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "actors/assembler/group_header.hpp"
#include "actors/assembler/journal.hpp"
#include "actors/group_set.hpp"
#include "actors/interfaces.hpp"
#include "actors/leader.hpp"
#include "actors/run_config.hpp"
#include "actors/run_counters.hpp"

namespace millrace {

/// When a group ends that is not complete, counted from its first message. Unit: s; 0: never.
struct group_deadlines {
  std::map<std::string, double, std::less<>> by_env;
  double other = 0; ///< of an environment that is not in `by_env`

  double of(std::string_view env) const {
    const auto found = by_env.find(env);
    return found == by_env.end() ? other : found->second;
  }
};

struct assembler_options {
  std::string name = "assembler-0";
  std::uint32_t readers = 1; ///< that share the source: which group is whose
  std::uint64_t seq_len = 0; ///< what a sample keeps, for the headers
  group_deadlines deadlines{};
  std::shared_ptr<const run_config> settings = nullptr; ///< filters by environment; null: none
};

struct assembler_peers {
  std::vector<peer> scorers; ///< to begin with
  peer planner;
  peer supervisor{};
};

/// Joins frames to episodes and episodes to groups, sends the headers of complete groups on, and
/// serves their bytes until the planner says that they are settled.
///
///     (none) --first message--> open --all members done--> complete --settled--> closed
///                                 +---end of data, deadline-----^   (tombstone)
///
/// What comes for a complete or closed group is late; what comes twice is a duplicate: both are
/// counted and dropped. A complete group goes to the scorer with the fewest groups; if that is lost
/// before the planner has the answer, to another. A planner that starts again gets every complete
/// group again; a reader that does sends all it has from the beginning, so what is incomplete of it
/// is let go. A closed group opens again if its reader says that it is wanted again.
///
/// With a journal it writes down what it takes in, and tells the readers what is on the disk: they
/// forget it. When it starts again it has its groups again; what was incomplete goes on when its
/// reader sends something of it, and is let go when that ends without. A group in a step that may
/// have to be made again is only on the disk. Thread: with a journal its own (spawned detached),
/// since it waits for the disk.
class assembler : public stage_actor {
public:
  assembler(caf::actor_config &config, const actor_context &context, assembler_options options,
            assembler_peers peers, std::shared_ptr<run_counters> counters,
            std::unique_ptr<journal> own = nullptr);

  caf::behavior make_behavior() override;
  /// Lets go of other actors, who may hold this one: a ring would never be destroyed.
  void on_exit() override {
    groups_.clear();
    scorers_.clear();
    readers_.clear();
    unwritten_.clear();
    journal_.reset(); // whoever starts next may open it
  }

  /// From the assembler to itself: the deadline of a group that was opened then.
  struct group_due {
    group_ref group;
    std::uint64_t opening;
  };
  /// From the assembler to itself.
  struct flush_journal {}; ///< what was written a moment ago has to reach the disk
  struct retry_journal {}; ///< there was no space; is there now?

private:
  /// An episode on its way: frames until its end is there, then a member of its group.
  struct member {
    std::map<std::uint32_t, episode_frame> frames; ///< by number
    std::uint32_t attempt = 0;
    bool done = false;
    group_member result;
    episode_header header;
  };
  struct group {
    std::shared_ptr<const group_info> info;
    std::map<std::uint32_t, member> members; ///< by place in the group
    std::uint32_t done = 0;
    bool complete = false;
    bool expired = false; ///< complete: data ended, or its deadline came, before it was
    bool overdue = false; ///< expired: its deadline came
    std::uint64_t opening = 0;
    bool scored = false; ///< a step is made again from it: no scorer is asked
    planner_moment when; ///< it was sent again since the planner wanted it then
    bool again = false;  ///< what comes may be there already: it was moved, or is wanted again
    /// Its reader sends it here. Not known of one that the journal has from an earlier start.
    bool claimed = true;
    bool unoffered = false; ///< complete, from the journal, and the planner has not spoken yet
    frame header;           ///< complete: until the planner has the group
    peer scorer;            ///< who was asked; none: nobody is there, or a tombstone went instead
  };
  struct scorer_state {
    peer who;
    std::uint64_t asked = 0; ///< groups that it has and the planner has not
    bool draining = false;
  };

  /// Something for the journal, or only for a reader to hear.
  struct unwritten {
    group_ref group;
    std::optional<arrival> what;
    std::optional<safe_message> name;
  };

  /// Where a message goes; no member: it comes too late or twice.
  struct spot {
    group *where = nullptr;
    member *one = nullptr;
  };

  void take_frame(const frame_arrived &in);
  void take_episode(const episode_arrived &in);
  void take_rejected(const episode_rejected &in);
  void take_size(const group_sized &in);
  void take_end(const source_ended &in);
  void take_due(const group_due &in);
  void take_hello(const planner_hello &in);
  void take_again(const group_again &in);
  void take_wanted(const groups_wanted &in);
  void settle(const groups_settled &in);
  void set_deadline(group_ref ref, group &where);
  void forget_headers(const groups_received &in);
  void fetch(const fetch_episodes &in);
  void take_up(const peer_up &in);
  void take_draining(const peer_draining &in);
  void take_down(const peer_down &in);
  void finish(const drain &);

  // assembler_journal.cpp
  void record(arrival what);
  void record_repeat(const safe_message &again);
  void write_journal();
  void miss_space(const error &why);
  void retry(const retry_journal &);
  void flush(const flush_journal &);
  void tell_safe(std::uint64_t reader);
  void restore();
  bool bring_back(group_ref ref);
  void begin_journal();
  void drop_from_journal(const std::set<group_ref> &ended, bool for_good);
  void give_up(const error &why);

  void take_again_from_journal(const arrival &what);

  group &group_at(group_ref ref, const std::shared_ptr<const group_info> &info);
  spot open(const safe_message &what, const std::shared_ptr<const group_info> &info);
  member *open_member(group_ref ref, group &where, std::uint32_t number, std::uint32_t attempt);
  void join(group_ref ref, group &where, member &one);
  void finish_member(group_ref ref, group &where, member &one, group_member result);
  void complete_if_full(group_ref ref, group &where);
  void offer(group_ref ref, group &where);
  void count_late(group_ref ref);
  void count_duplicate(group_ref ref);
  void lose_reader(std::uint32_t reader);
  void ask_scorer(group_ref ref, group &where);
  void release_scorer(group &where);
  void leave_if_idle();
  void show_wait();
  episodes_fetched look_up(const fetch_episodes &in) const;
  filter_rules rules_for(const group &where) const;
  void expire(group_ref ref, group &where);
  result<frame> header_of(group_ref ref, const group &where) const;
  frame bare_header_of(group_ref ref, const group &where) const;

  const assembler_options options_;
  const assembler_peers peers_;
  leader planner_{peers_.planner};
  std::shared_ptr<run_counters> counters_;

  std::map<group_ref, group> groups_; ///< open and complete
  group_set closed_;                  ///< settled
  std::set<std::uint32_t> repeating_; ///< readers that started again: they send much twice
  std::vector<scorer_state> scorers_;
  bool draining_ = false;
  std::uint64_t openings_ = 0; ///< of groups, so far

  std::unique_ptr<journal> journal_;      ///< none: assembler.journal is off
  std::map<std::uint64_t, peer> readers_; ///< by number
  std::deque<unwritten> unwritten_;       ///< in the order of arrival
  /// By reader: in the journal, not on the disk for sure; on the disk, not told.
  std::map<std::uint64_t, std::vector<safe_message>> unsynced_;
  std::map<std::uint64_t, std::vector<safe_message>> safe_;
  bool replaying_ = false; ///< what comes is from the journal
  bool flush_due_ = false; ///< a flush_journal is on its way
  bool no_space_ = false;  ///< a retry_journal is on its way
  bool said_no_space_ = false;
  bool failed_ = false; ///< said so
};

} // namespace millrace

MILLRACE_MESSAGE(millrace::assembler::group_due)
MILLRACE_MESSAGE(millrace::assembler::flush_journal)
MILLRACE_MESSAGE(millrace::assembler::retry_journal)
