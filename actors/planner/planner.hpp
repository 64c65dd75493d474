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

#include "actors/interfaces.hpp"
#include "actors/planner/planner_config.hpp"
#include "actors/planner/step.hpp"
#include "actors/run_counters.hpp"
#include "actors/trainer/micro_batch_digest.hpp"

namespace millrace {

struct planner_options {
  batch_config batch;
  planner_config limits;
  plan_config plan;
  bool deterministic = false;
  std::uint32_t readers = 1;      ///< so many must end before data has ended
  std::uint64_t max_steps = 0;    ///< 0: as many as the data gives
  std::uint64_t memory_limit = 0; ///< bytes held above which no new group begins
};

/// One per run: queues scored groups, cuts steps, plans them, hands bins to packers, commits, and
/// settles groups.
///
/// A step:  (queue) --cut--> packing --staged on every rank--> committed --trained on every rank-->
/// done
///
/// Permits bound what is under way: a new group begins while complete groups wait for at most
/// max_backlog_steps steps, begun ones are at most max_open_groups, and memory is below its limit.
/// A hungry planner (nothing is packed beyond the step in training, and there is no whole batch)
/// lets one more group begin whatever the limits say, so that a recording whose groups are far
/// apart still gets through.
class planner : public stage_actor {
public:
  planner(caf::actor_config &config, const actor_context &context, planner_options options,
          peer supervisor, std::shared_ptr<run_counters> counters);

  caf::behavior make_behavior() override;
  /// Lets go of the other actors: they hold the planner, and a ring of actors would never be
  /// destroyed.
  void on_exit() override;

private:
  struct queued_group {
    group_ref ref;
    ready_group scored;
    peer assembler;
  };
  /// A bin that was given to a packer.
  struct bin_order {
    pack_bin order;
    peer packer; ///< none: nobody is there
  };
  struct packer_state {
    peer who;
    bool draining = false; ///< gets nothing new
  };
  struct step_state {
    std::vector<queued_group> groups;
    step_report report;
    std::map<std::uint32_t, std::vector<micro_batch_digest>> staged; ///< by rank
    std::set<std::uint32_t> trained;                                 ///< ranks
    std::map<bin_ref, bin_order> bins; ///< until their rank has staged them
    bool committed = false;
  };

  void take_scored(const group_scored &in);
  void take_tombstone(const group_tombstone &in);
  void take_wish(const permit_wanted &in);
  void take_end(const source_ended &in);
  void take_staged(const step_staged &in);
  void take_trained(const step_trained &in);
  void stop(const stop_run &in);

  void take_up(const peer_up &in);
  void take_draining(const peer_draining &in);
  void take_down(const peer_down &in);
  void hear(const rank_notice &in);

  void receive(group_ref ref, result<ready_group> group, const peer &assembler);
  void receive_again(group_ref ref, const peer &assembler);
  void relocate(step_state &step, group_ref ref, const peer &assembler);
  queued_group *find(group_ref ref);
  void pump();
  void enqueue(queued_group group);
  bool all_received() const;
  bool has_batch() const;
  bool can_cut() const;
  bool ending() const;
  void cut_step();
  void start_step(step_state step);
  void send_bins(step_state &step, const step_bins &bins);
  void give_orphans();
  bool ready_to_pack() const;
  static bool are_planned(const step_state &step, const step_staged &in);
  void commit_ready();
  void settle(const std::vector<queued_group> &groups);
  void tell_settled(const peer &whom, std::vector<group_ref> groups);
  void enter(const queued_group &group, group_end end);
  bool hungry() const;
  void tell_hunger();
  void show_wait();
  std::uint64_t assemblers_must_carry(const step_state &step) const;
  void give_permits();
  void finish_if_done();
  void give_up(const error &why);

  const planner_options options_;
  const peer supervisor_;
  std::shared_ptr<run_counters> counters_;
  std::vector<peer> readers_;
  std::vector<packer_state> packers_;
  std::vector<peer> feeders_; ///< by rank
  std::vector<rank_notice> notices_;

  std::map<group_ref, queued_group> waiting_; ///< deterministic: arrived before their turn
  std::deque<queued_group> queue_;            ///< groups with kept samples, in order
  std::uint64_t next_ordinal_ = 0;            ///< deterministic: the one whose turn it is
  std::set<group_ref> received_;              ///< groups that have arrived
  std::uint64_t backlog_traces_ = 0;          ///< kept traces in queue_ and waiting_
  std::uint64_t backlog_tokens_ = 0;
  std::uint64_t queue_traces_ = 0; ///< kept traces in queue_
  std::uint64_t queue_tokens_ = 0;

  std::set<std::uint32_t> ended_; ///< readers
  std::uint64_t source_groups_ = 0;
  std::map<std::uint32_t, std::uint64_t> wishes_; ///< by reader: the group it waits with
  std::uint64_t permitted_below_ = 0;
  bool told_hungry_ = false;

  std::map<std::uint64_t, step_state> steps_; ///< cut and not yet trained
  std::uint64_t next_step_ = 1;
  bool stopping_ = false;
  bool finished_ = false;

  std::shared_ptr<ledger> ledger_ = std::make_shared<ledger>();
  grid_hash grid_hash_;
};

} // namespace millrace
