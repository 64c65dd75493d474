// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "actors/interfaces.hpp"
#include "actors/run_counters.hpp"
#include "actors/trainer/rank_standing.hpp"
#include "actors/trainer/tensors.hpp"

namespace millrace {

struct feeder_options {
  std::uint32_t rank = 0;
  std::uint64_t memory_limit = UINT64_MAX; ///< bytes held above which nothing is fetched early
  /// Takes what other ranks tell this one, so that their collective can meet; may be empty.
  std::function<void(const rank_notice &)> noticed;
  /// All that ranks of this process have told the others, for a planner that has forgotten it; may
  /// be empty.
  std::function<std::vector<rank_notice>()> told;
};

struct feeder_peers {
  peer planner; ///< until one says hello
  peer trainer; ///< of the same rank, in the same process
  peer supervisor;
};

/// Speaks for a rank: tells planners where it stands, fetches the micro batches of its steps from
/// packers, verifies and digests them, and hands committed steps to the rank's trainer in order. It
/// fetches ahead as far as memory.limit allows; the step that is needed next is always fetched,
/// whatever its size.
///
/// A step:  (first message) --> collecting --all here--> staged --commit--> handed on --trained-->
/// told, until it is recorded. A planner of a higher epoch cuts anew what is not committed: that is
/// dropped. What comes of a lower epoch is late, and what is of another folder is not for it: both
/// are ignored.
class feeder : public stage_actor {
public:
  feeder(caf::actor_config &config, const actor_context &context, feeder_options options,
         feeder_peers peers, std::shared_ptr<run_counters> counters);

  caf::behavior make_behavior() override;
  /// Lets go of other actors, who may hold this one: a ring would never be destroyed.
  void on_exit() override;

private:
  struct entry {
    micro_batch batch;
    micro_batch_digest digest;
    component_totals counts;
  };
  /// A micro batch that a packer holds for this rank.
  struct offer {
    peer packer;
    std::uint64_t bytes = 0;
    bool asked = false;
  };
  struct step_state {
    std::optional<std::uint32_t> expected;
    std::map<std::uint32_t, offer> offers; ///< by index; not here yet
    std::map<std::uint32_t, entry> here;   ///< by index
    std::uint64_t wire_bytes = 0;
    bool staged = false;
  };

  // With the planner and the trainer: where the rank stands.
  void greet(const planner_hello &in);
  void leave(const planner_claim &former, const planner_hello &in);
  void stand_at(std::uint64_t durable);
  void take_loaded(const checkpoint_loaded &in);
  void begin(const begin_generation &in);
  void end(const end_generation &in);
  void commit(const commit_step &in);
  void take_trained(const step_trained &in);
  void take_saved(const checkpoint_saved &in);
  void take_recorded(const steps_recorded &in);
  void finish(const finish_training &in);
  void hear(const rank_notice &in);
  void tell_state();
  void give_up(const error &why);

  // With the packers: what is not committed yet, all of it of the same claim.
  void expect(const stage_step &in);
  void take_offer(const micro_batch_ready &in);
  void take(const micro_batch_packed &in);
  void lose(const peer_down &in);
  void look_again(const look_for_room &);
  bool is_late(const planner_claim &claim);
  void drop_staged(const planner_claim &former);
  void forget_below(std::uint64_t number);
  void release(std::uint64_t number, step_state &step, const planner_claim &claim);
  void fetch_what_fits();
  std::uint64_t next_to_stage() const;
  void keep(const bin_ref &bin, micro_batch batch, std::uint64_t bytes);
  void stage_if_complete(std::uint64_t number);
  void show_wait();

  const feeder_options options_;
  feeder_peers peers_;
  std::shared_ptr<run_counters> counters_;
  rank_standing standing_;
  std::optional<std::uint64_t> loading_; ///< the checkpoint that the trainer was asked to load
  std::uint64_t durable_ = 0;            ///< the last step that all ranks have a checkpoint of
  std::map<std::uint64_t, step_state> steps_;
  std::uint64_t asked_bytes_ = 0; ///< of offers that were asked for and have not come
  bool looking_ = false;          ///< a look_for_room is on its way
  micro_batch_tensors scratch_;
};

} // namespace millrace
