// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>

#include "actors/interfaces.hpp"
#include "actors/run_counters.hpp"
#include "actors/trainer/tensors.hpp"
#include "runtime/collective/collective.hpp"

namespace millrace {

/// Joins a rank to the others. Blocks until all are there: called in the trainer's own thread.
using rank_join = std::function<result<std::unique_ptr<collective>>()>;

struct trainer_options {
  std::uint32_t rank = 0;
  rank_join join;
  std::filesystem::path dump; ///< folder for the tensors of every micro batch; empty: none
};

struct trainer_peers {
  peer planner;
  peer supervisor;
};

/// The trainer of one rank, on the host: turns micro batches into tensors, and agrees with the
/// other ranks on every step before and after it. It computes no gradient yet. Thread: its own
/// (spawned detached), because collectives block; it is the one actor that may.
class trainer : public stage_actor {
public:
  trainer(caf::actor_config &config, const actor_context &context, trainer_options options,
          trainer_peers peers, std::shared_ptr<run_counters> counters);

  caf::behavior make_behavior() override;

private:
  void train(const train_step &in);
  void wait_for(std::uint64_t step);
  result<component_totals> apply(const train_step &in);
  result<component_counts> widen_all(const train_step &in);

  const trainer_options options_;
  const trainer_peers peers_;
  std::shared_ptr<run_counters> counters_;
  std::unique_ptr<collective> ranks_;
  micro_batch_tensors tensors_;
};

} // namespace millrace
