// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <memory>

#include "actors/interfaces.hpp"
#include "actors/run_counters.hpp"
#include "actors/trainer/checkpoint.hpp"
#include "actors/trainer/learner.hpp"
#include "runtime/collective/breaker.hpp"
#include "runtime/collective/collective.hpp"

namespace millrace {

/// Joins a rank to the others of a trainer job. Blocks until all are there: called in the trainer's
/// own thread.
using rank_join = std::function<result<std::unique_ptr<collective>>(std::uint64_t generation)>;

struct trainer_options {
  std::uint32_t rank = 0;
  rank_join join;
  checkpoint_owner checkpoints;
  std::uint64_t checkpoint_every = 0; ///< steps; 0: never
  /// When other ranks are lost the process is to be started again (errc::restart), and the run goes
  /// on; else that is the end of the run.
  bool restarts = false;
  /// Ends its waits for other ranks when the run has failed; may be null.
  std::shared_ptr<collective_breaker> breaker = {};
};

/// From a trainer to itself: look whether there is space for a checkpoint.
struct save_again {
  static constexpr std::chrono::seconds pause{1};
};

/// The trainer of one rank: agrees with the other ranks on every step before and after it, and has
/// the learner apply it and save itself. Thread:
/// its own (spawned detached), because collectives block; it is the one actor that may.
///
///   new --load_checkpoint--> at rest --begin_training--> joined, one train_step after the other
///
/// A checkpoint that is due comes before the next step, whatever it takes: when all ranks say that
/// they have saved a step, every one of them has it.
class trainer : public stage_actor {
public:
  trainer(caf::actor_config &config, const actor_context &context, trainer_options options,
          std::unique_ptr<learner> what, peer supervisor, std::shared_ptr<run_counters> counters);

  caf::behavior make_behavior() override;
  /// Lets go of the feeder, who holds this one.
  void on_exit() override;

private:
  void load(const load_checkpoint &in);
  void begin(const begin_training &in);
  void train(const train_step &in);
  void finish(const finish_training &in);
  void look_again(const save_again &);
  void clear_away(const steps_recorded &in);

  void step(const train_step &in);
  void go_on();
  void wait_for(std::uint64_t number);
  bool try_save();
  result<component_totals> apply(const train_step &in);
  status restore(std::uint64_t step);
  status save();
  void fail_with(error why);

  const trainer_options options_;
  checkpoint_owner checkpoints_; ///< with the planner's folder
  const std::unique_ptr<learner> learner_;
  peer supervisor_;
  peer feeder_; ///< of the same rank; none before its first message
  std::shared_ptr<run_counters> counters_;
  std::shared_ptr<collective> ranks_;
  std::uint64_t generation_ = 0; ///< of the job that the rank has joined
  std::uint64_t applied_ = 0;    ///< the last step that the learner has applied
  std::uint64_t saved_ = 0;      ///< the last step of which there is a checkpoint
  bool save_due_ = false;        ///< of `applied_`; no step is applied before it
  std::uint64_t last_step_ = 0;  ///< of the run, once it is known: it is saved in any case
  std::deque<train_step> held_;  ///< steps that wait for that
  bool looking_ = false;         ///< a save_again is on its way
  bool said_no_space_ = false;
};

} // namespace millrace

MILLRACE_MESSAGE(millrace::save_again)
