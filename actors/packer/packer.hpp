// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "actors/interfaces.hpp"
#include "actors/packer/bin_sources.hpp"
#include "actors/run_counters.hpp"

namespace millrace {

struct packer_options {
  std::string name = "packer-0";
  std::uint64_t memory_limit = UINT64_MAX; ///< bytes held above which no bin is begun early
};

/// Gathers the bins that the planner gives it: fetches the episodes, once for each bin, encodes the
/// micro batch and keeps it until the rank's feeder has it. Any number of packers work side by
/// side.
///
/// A bin:  waiting --room--> fetching --all episodes here--> gathered --taken by the feeder--> gone
///
/// Bins begin in the order of their steps, as far as memory.limit allows; the first one always
/// does, so that a bin larger than the limit still gets through. A bin that the planner sends again
/// (its episodes have moved) replaces what was fetched for it. Bins of an earlier epoch are
/// dropped: their step was thrown away. While it has bins of a planner it refuses those of other
/// folders; without any it works for whoever comes.
class packer : public stage_actor {
public:
  packer(caf::actor_config &config, const actor_context &context, packer_options options,
         peer supervisor, std::shared_ptr<run_counters> counters);

  caf::behavior make_behavior() override;
  /// Lets go of other actors, who may hold this one: a ring would never be destroyed.
  void on_exit() override {
    jobs_.clear();
    gathered_.clear();
  }

private:
  struct job {
    body<wire::BinPlan> plan;
    pack_bin order;
    std::vector<std::vector<std::uint32_t>> needed; ///< episodes, by group of the plan
    std::vector<fetched_group> groups;
    std::uint64_t number = 0; ///< stands in the questions; 0: waiting
    std::size_t missing = 0;  ///< groups whose episodes have not come
    bool lost = false;        ///< who should have them has not: the planner will say more
  };
  struct gathered {
    message parts;
    peer feeder;
  };

  void take_bin(const pack_bin &in);
  void store(const episodes_fetched &in);
  void gather_bin(const bin_fetched &in);
  void give(const fetch_micro_batch &in);
  void forget(const micro_batch_taken &in);
  void look_again(const look_for_room &);
  void finish(const drain &);
  void take_hello(const planner_hello &in);
  bool follow(const planner_claim &claim);
  void drop_all();
  void lose(const peer_down &in);

  result<job> read_order(const pack_bin &in) const;
  void begin_what_fits();
  bool may_begin(const bin_ref &bin, const job &work) const;
  void fetch(job &work);
  void stop_fetching(const job &work);
  void announce(const bin_ref &bin, const gathered &what);
  void leave_if_idle();
  void show_wait();
  void give_up(const error &why);

  const packer_options options_;
  const peer supervisor_;
  std::shared_ptr<run_counters> counters_;
  std::map<bin_ref, job> jobs_;              ///< waiting and fetching
  std::map<std::uint64_t, bin_ref> numbers_; ///< of those that are fetching
  std::uint64_t asked_bytes_ = 0;            ///< of their episodes
  std::map<bin_ref, gathered> gathered_;
  std::uint64_t last_number_ = 0;
  planner_claim leader_; ///< whom it works for; epoch 0: nobody yet
  bool looking_ = false; ///< a look_for_room is on its way
  bool draining_ = false;
};

} // namespace millrace
