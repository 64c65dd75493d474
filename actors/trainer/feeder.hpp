// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>

#include "actors/interfaces.hpp"
#include "actors/run_counters.hpp"
#include "actors/trainer/tensors.hpp"

namespace millrace {

struct feeder_peers {
  caf::actor planner;
  caf::actor trainer; ///< of the same rank
  caf::actor supervisor;
};

/// Holds the micro batches of one rank, verifies and digests them, and hands committed steps to the
/// rank's trainer in order. How many steps it holds is bounded by the planner's lookahead.
///
/// A step:  (first message) --> collecting --all here--> staged --commit--> handed on
class feeder : public stage_actor {
public:
  feeder(caf::actor_config &config, const actor_context &context, std::uint32_t rank,
         feeder_peers peers, std::shared_ptr<run_counters> counters);

  caf::behavior make_behavior() override;

private:
  struct entry {
    micro_batch batch;
    micro_batch_digest digest;
  };
  struct step_state {
    std::optional<std::uint32_t> expected;
    std::map<std::uint32_t, entry> here; ///< by index
    std::uint64_t wire_bytes = 0;
    bool staged = false;
  };

  void expect(const stage_step &in);
  void take(const micro_batch_packed &in);
  void commit(const commit_step &in);
  void stage_if_complete(std::uint64_t number);
  void give_up(const error &why);

  const std::uint32_t rank_;
  const feeder_peers peers_;
  std::shared_ptr<run_counters> counters_;
  std::map<std::uint64_t, step_state> steps_;
  std::uint64_t last_committed_ = 0;
  micro_batch_tensors scratch_;
};

} // namespace millrace
