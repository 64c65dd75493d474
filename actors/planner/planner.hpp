// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "actors/interfaces.hpp"
#include "actors/planner/empty_watch.hpp"
#include "actors/planner/group_queue.hpp"
#include "actors/planner/live_step.hpp"
#include "actors/planner/planner_config.hpp"
#include "actors/planner/rank_board.hpp"
#include "actors/planner/run_log.hpp"
#include "actors/planner/score_turns.hpp"
#include "actors/run_counters.hpp"

namespace millrace {

struct planner_options {
  batch_config batch;
  planner_config limits;
  plan_config plan;
  bool deterministic = false;
  std::uint32_t readers = 1;      ///< so many must end before data has ended
  std::uint64_t max_steps = 0;    ///< 0: as many as the data gives
  std::uint64_t memory_limit = 0; ///< bytes held above which no new group begins
  step_keep keep = step_keep::trained;
  staleness_rule staleness;
  bool checkpoints = false; ///< the trainer makes some: the run ends with one
  bool restarts = true;     ///< a lost rank is started again, and the others with it
  bool journals = false;    ///< assemblers keep what may be wanted again
};

/// One per run: queues scored groups, cuts steps, plans them, hands bins to packers, commits, and
/// settles groups. What it has done stands in its log before anybody hears of it
/// (docs/recovery.md); when it starts again it goes on from there. Thread: its own (spawned
/// detached), since it waits for the disk.
///
/// A step:  (queue) --cut--> packing --staged on every rank--> committed --trained on every rank-->
/// done. One that the trainer needs again after a restart is packed again from its record.
///
/// Permits bound what is under way: a new group begins while complete groups wait for at most
/// max_backlog_steps steps, begun ones are at most max_open_groups, and memory is below its limit.
/// A hungry planner (nothing is packed beyond the step in training, and there is no whole batch)
/// lets one more group begin whatever the limits say, so that a recording whose groups are far
/// apart still gets through.
class planner : public stage_actor {
public:
  planner(caf::actor_config &config, const actor_context &context, planner_options options,
          std::unique_ptr<run_log> log, peer supervisor, std::shared_ptr<run_counters> counters);

  caf::behavior make_behavior() override;
  /// Lets go of the other actors: they hold the planner, and a ring of actors would never be
  /// destroyed.
  void on_exit() override;

  /// From the planner to itself.
  struct flush_log {};   ///< what was written a moment ago has to reach the disk
  struct retry_write {}; ///< there was no space; is there now?

private:
  struct packer_state {
    peer who;
    bool draining = false; ///< gets nothing new
  };
  /// A group that ends outside a step.
  struct ended_group {
    group_ref ref;
    log_group entry;
    peer assembler;
  };

  // planner_answers.cpp: answers of scorers
  void take_wanted(const score_wanted &in);
  void take_scored(const group_scored &in);
  void log_answers();
  bool may_follow(const group_scored &in) const;
  void ask_once_more(const group_scored &in);
  void give_turns();

  // planner.cpp: groups, permits, the end
  void take_tombstone(const group_tombstone &in);
  void take_held(const group_held &in);
  void answer_settled(const group_held &in);
  void take_wish(const permit_wanted &in);
  void take_end(const source_ended &in);
  void stop(const stop_run &in);
  void receive(group_ref ref, result<ready_group> group, const peer &assembler);
  void take_in(group_ref ref, result<ready_group> group, const peer &assembler);
  void receive_again(group_ref ref, const peer &assembler);
  void pump();
  bool all_received() const;
  bool has_batch() const;
  bool ending() const;
  bool hungry() const;
  bool waits_for_bytes() const;
  void tell_hunger();
  void show_wait();
  void show_step_wait(std::uint64_t number, const live_step &step);
  void show_rank_wait();
  void show_batch_wait();
  void give_permits();
  bool nothing_to_come() const;
  void finish_if_done();
  void give_up(const error &why);

  // planner_groups.cpp: groups that wait, and how those end that go to no step
  void settle_ended();
  void end_group(queued_group group, group_end end, std::uint64_t judged_for = 0);
  void judge_queue();
  void watch_step(const live_step &step);
  void watch_emptiness();
  void stop_if_empty();
  void say_last_batch();
  void tell_progress();
  std::uint64_t next_step() const;

  // planner_peers.cpp: who comes and goes, and what they are told
  void take_up(const peer_up &in);
  void take_draining(const peer_draining &in);
  void take_down(const peer_down &in);
  void hear(const rank_notice &in);
  void take_refusal(const planner_refused &in);
  planner_claim claim() const;
  planner_hello hello();
  void greet_reader(const peer &who);
  void greet_assembler(const peer &who);
  void tell_known(const peer &whom, const std::vector<group_ref> &groups);
  void settle(const std::vector<group_ref> &groups, bool for_good);
  void tell_readers(const std::vector<group_ref> &groups, bool for_good);
  void tell_settled(const peer &whom, const std::vector<group_ref> &groups, bool for_good = true);
  void ask_again_for_lost(const peer &assembler);
  void ask_for_lost_copies(const peer &assembler);
  void ask_for(const std::vector<group_ref> &groups, bool scored);
  void ask(const peer &whom, const std::vector<group_ref> &groups, bool scored);
  std::vector<group_ref> missing_groups() const;
  peer reader_of(group_ref ref) const;

  // planner_steps.cpp: steps
  bool ready_to_pack() const;
  bool can_cut() const;
  void cut_step();
  result<step_bins> plan(live_step &step);
  void start_step(live_step step);
  void give_orphans();
  void take_staged(const step_staged &in);
  void take_staged_again(live_step &step, const step_staged &in);
  void commit_again(std::uint32_t rank);
  static bool are_planned(const live_step &step, const step_staged &in);
  void commit_ready();
  bool commit(std::uint64_t number, live_step &step);
  void take_trained(const step_trained &in);
  void record_trained();
  std::uint64_t assemblers_must_carry(const live_step &step) const;

  // planner_ranks.cpp: the trainer's jobs, and the log
  void take_state(const rank_state &in);
  void take_saved(const checkpoint_saved &in);
  void lead_ranks();
  bool begin_job();
  bool catch_up(std::uint64_t step);
  bool roll_back(std::uint64_t next);
  void adopt_job();
  void end_job(const std::string &why);
  void make_again();
  void ask_last_checkpoint();
  void record_durable();
  bool write(const log_record &record);
  bool sync();
  void flush(const flush_log &);
  void retry(const retry_write &);

  const planner_options options_;
  std::unique_ptr<run_log> log_;
  const peer supervisor_;
  std::shared_ptr<run_counters> counters_;
  std::vector<peer> readers_;
  std::vector<peer> assemblers_;
  std::set<peer> gone_; ///< assemblers that were lost or have left, to know late words of them
  std::vector<packer_state> packers_;
  rank_board ranks_;
  std::vector<rank_notice> notices_; ///< of the ranks that are one job

  group_queue queue_;
  score_turns turns_;
  std::deque<group_scored> unlogged_; ///< answers that cannot be had twice
  empty_watch empty_;
  std::uint64_t judged_in_ = 0;              ///< of queue_, when empty_ heard of it
  group_set received_;                       ///< groups that have arrived, now or before
  std::set<group_ref> freed_;                ///< their step was rolled back; not here again
  std::vector<ended_group> ended_;           ///< not in the log yet
  std::vector<group_ref> unsettled_;         ///< written down, not on the disk for sure
  std::vector<group_held> unanswered_;       ///< offered again meanwhile
  std::map<std::uint64_t, live_step> steps_; ///< not trained yet, or wanted again

  std::set<std::uint32_t> ended_readers_;
  std::uint64_t source_groups_ = 0;
  std::map<std::uint32_t, std::uint64_t> wishes_; ///< by reader: the group it waits with
  std::uint64_t permitted_below_ = 0;
  std::uint64_t asks_ = 0; ///< that were made: planner_moment
  bool told_hungry_ = false;
  bool said_last_batch_ = false;
  planner_progress told_progress_;

  bool flush_due_ = false; ///< a flush_log is on its way
  bool no_space_ = false;  ///< a retry_write is on its way
  bool said_no_space_ = false;
  std::uint64_t told_trained_ = 0;
  std::uint64_t told_durable_ = 0;
  std::uint64_t asked_checkpoint_ = 0; ///< generation whose ranks were asked for the last one
  bool stopping_ = false;
  bool finished_ = false;
};

} // namespace millrace

MILLRACE_MESSAGE(millrace::planner::flush_log)
MILLRACE_MESSAGE(millrace::planner::retry_write)
