// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "actors/interfaces.hpp"
#include "actors/run_counters.hpp"
#include "actors/trainer/tensors.hpp"

namespace millrace {

struct feeder_options {
  std::uint32_t rank = 0;
  std::uint64_t memory_limit = UINT64_MAX; ///< bytes held above which nothing is fetched early
  /// Takes what other ranks tell this one, so that their collective can meet; may be empty.
  std::function<void(const rank_notice &)> noticed;
};

struct feeder_peers {
  peer planner;
  peer trainer; ///< of the same rank, in the same process
  peer supervisor;
};

/// Fetches the micro batches of one rank from packers, verifies and digests them, and hands
/// committed steps to the rank's trainer in order. It fetches ahead as far as memory.limit allows;
/// the step that is needed next is always fetched, whatever its size.
///
/// A step:  (first message) --> collecting --all here--> staged --commit--> handed on
class feeder : public stage_actor {
public:
  feeder(caf::actor_config &config, const actor_context &context, feeder_options options,
         feeder_peers peers, std::shared_ptr<run_counters> counters);

  caf::behavior make_behavior() override;
  /// Lets go of other actors, who may hold this one: a ring would never be destroyed.
  void on_exit() override { steps_.clear(); }

private:
  struct entry {
    micro_batch batch;
    micro_batch_digest digest;
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

  void expect(const stage_step &in);
  void take_offer(const micro_batch_ready &in);
  void take(const micro_batch_packed &in);
  void commit(const commit_step &in);
  void lose(const peer_down &in);
  void look_again(const look_for_room &);
  void hear(const rank_notice &in);

  void fetch_what_fits();
  std::uint64_t next_to_stage() const;
  void keep(const bin_ref &bin, micro_batch batch, std::uint64_t bytes);
  void stage_if_complete(std::uint64_t number);
  void show_wait();
  void give_up(const error &why);

  const feeder_options options_;
  const feeder_peers peers_;
  std::shared_ptr<run_counters> counters_;
  std::map<std::uint64_t, step_state> steps_;
  std::uint64_t last_committed_ = 0;
  std::uint64_t asked_bytes_ = 0; ///< of offers that were asked for and have not come
  bool looking_ = false;          ///< a look_for_room is on its way
  micro_batch_tensors scratch_;
};

} // namespace millrace
