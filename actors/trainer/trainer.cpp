// SPDX-License-Identifier: Apache-2.0
#include "actors/trainer/trainer.hpp"

#include <array>
#include <utility>

#include "actors/trainer/agreement.hpp"
#include "runtime/crash_point.hpp"
#include "runtime/log.hpp"

namespace millrace {

trainer::trainer(caf::actor_config &config, const actor_context &context, trainer_options options,
                 std::unique_ptr<learner> what, peer supervisor,
                 std::shared_ptr<run_counters> counters)
    : stage_actor(config, context, fmt::format("trainer-{}", options.rank)),
      options_(std::move(options)), checkpoints_(options_.checkpoints), learner_(std::move(what)),
      supervisor_(std::move(supervisor)), counters_(std::move(counters)) {}

caf::behavior trainer::make_behavior() {
  counters_->waits->set(name(), "generation", "all ranks to be there", "planner");
  return {on(&trainer::load),   on(&trainer::begin),      on(&trainer::train),
          on(&trainer::finish), on(&trainer::look_again), on(&trainer::clear_away)};
}

void trainer::on_exit() {
  feeder_ = {};
  supervisor_ = {};
}

void trainer::load(const load_checkpoint &in) {
  feeder_ = in.feeder;
  checkpoints_.planner = in.folder;
  crash_point("trainer.load.begin");
  if (auto restored = restore(in.step); !restored) {
    fail_with(std::move(restored).error());
    return;
  }
  applied_ = saved_ = in.step;
  counters_->waits->set(name(), "generation", "all ranks to be there", "planner");
  crash_point("trainer.load.done");
  tell(feeder_, checkpoint_loaded{in.step});
}

status trainer::restore(std::uint64_t step) {
  if (step == 0) {
    learner_->reset();
    return {};
  }
  const auto saved = read_checkpoint(checkpoints_, step);
  if (!saved)
    return tl::unexpected(saved.error());
  if (auto loaded = learner_->load(saved->bytes(), checkpoint_folder(checkpoints_, step), step);
      !loaded)
    return with_context(
        std::move(loaded).error(),
        fmt::format("checkpoint '{}'", checkpoint_path(checkpoints_, step).string()));
  return {};
}

void trainer::begin(const begin_training &in) {
  feeder_ = in.feeder;
  checkpoints_.planner = in.folder;
  counters_->waits->set(name(), "join", "the other ranks to join", "trainer");
  crash_point("trainer.join.begin");
  auto joined = options_.join(in.generation);
  if (!joined) {
    fail_with(std::move(joined).error());
    return;
  }
  ranks_ = std::move(*joined);
  generation_ = in.generation;
  if (options_.breaker)
    options_.breaker->watch(ranks_);
  if (auto begun = learner_->begin(in.generation); !begun) {
    fail_with(std::move(begun).error());
    return;
  }
  crash_point("trainer.join.done");
  counters_->waits->set(name(), "step", "its first step", "planner");
}

void trainer::train(const train_step &in) {
  if (save_due_) {
    held_.push_back(in);
    return;
  }
  step(in);
  go_on();
}

/// Steps may still wait for a checkpoint: the word counts once the last one is applied.
void trainer::finish(const finish_training &in) {
  last_step_ = in.step;
  save_due_ = save_due_ || (applied_ == last_step_ && saved_ < applied_);
  go_on();
}

void trainer::look_again(const save_again &) {
  looking_ = false;
  go_on();
}

/// The checkpoint that is due, then the steps that had to wait for it.
void trainer::go_on() {
  while (!save_due_ || try_save()) {
    if (held_.empty())
      return;
    const auto next = std::move(held_.front());
    held_.pop_front();
    step(next);
  }
}

void trainer::step(const train_step &in) {
  counters_->waits->set(name(), fmt::format("ranks {}", in.step),
                        fmt::format("the other ranks in step {}", in.step), "trainer");
  crash_point("trainer.step.begin");
  auto totals = apply(in);
  if (!totals) {
    auto why = std::move(totals).error();
    why.message = fmt::format("generation {}: {}", generation_, why.message);
    fail_with(std::move(why));
    return;
  }
  applied_ = in.step;
  crash_point("trainer.step.trained");
  tell(feeder_, step_trained{in.step, options_.rank, *totals});
  crash_point("trainer.step.said");
  save_due_ = in.step == last_step_ ||
              (options_.checkpoint_every != 0 && in.step % options_.checkpoint_every == 0);
  wait_for(in.step + 1);
}

void trainer::wait_for(std::uint64_t number) {
  const auto what = fmt::format("step {}", number);
  counters_->waits->set(name(), what, what, "planner");
}

/// The order of a step: agree, reduce the counts that losses divide by, work, and a last exchange
/// of fixed size, after which every rank knows that every rank has applied the step.
result<component_totals> trainer::apply(const train_step &in) {
  MILLRACE_ASSERT(ranks_, "step {} came before the ranks were to join", in.step);
  MILLRACE_TRY(agree(*ranks_, in.step, in.step_digest, in.micro_batches.size()));
  crash_point("trainer.step.agreed");
  std::array<std::int64_t, 3> sums{in.mine.rl, in.mine.ce, in.mine.ref_kl};
  MILLRACE_TRY(ranks_->all_reduce({"token counts", in.step}, std::span(sums), reduction::sum));
  const component_totals totals{sums[0], sums[1], sums[2]};
  MILLRACE_TRY(learner_->step({.step = in.step,
                               .digest = in.step_digest,
                               .totals = totals,
                               .staleness = in.staleness,
                               .micro_batches = in.micro_batches,
                               .ranks = *ranks_}));
  crash_point("trainer.step.applied");
  std::array<std::int64_t, 1> applied{1};
  MILLRACE_TRY(ranks_->all_reduce({"trained", in.step}, std::span(applied), reduction::sum));
  return totals;
}

/// Tries to write the checkpoint that is due. A full disk loses nothing: what follows waits.
bool trainer::try_save() {
  const auto topic = fmt::format("checkpoint {}", applied_);
  counters_->waits->set(name(), topic, fmt::format("the checkpoint of step {}", applied_), "");
  const auto saved = save();
  if (!saved && saved.error().code == errc::no_space) {
    counters_->waits->set(name(), topic,
                          fmt::format("space for the checkpoint of step {}", applied_), "");
    if (!std::exchange(said_no_space_, true))
      log::error("{}: {}; no step follows until there is space", name(), saved.error().message);
    if (!std::exchange(looking_, true))
      delayed_send(this, save_again::pause, save_again{});
    return false;
  }
  if (!saved) {
    fail_with(saved.error());
    return false;
  }
  save_due_ = false;
  saved_ = applied_;
  if (std::exchange(said_no_space_, false))
    log::info("{}: there is space for checkpoints again", name());
  crash_point("trainer.checkpoint.saved");
  tell(feeder_, checkpoint_saved{options_.rank, saved_});
  crash_point("trainer.checkpoint.said");
  wait_for(applied_ + 1);
  return true;
}

status trainer::save() {
  crash_point("trainer.checkpoint.begin");
  const auto state = learner_->save(checkpoint_folder(checkpoints_, applied_));
  if (!state)
    return tl::unexpected(state.error());
  return save_checkpoint(checkpoints_, applied_, *state);
}

/// Checkpoints that nobody will ask for. What cannot be removed only takes space.
void trainer::clear_away(const steps_recorded &in) {
  crash_point("trainer.checkpoint.remove");
  if (const auto cleared = remove_checkpoints_below(checkpoints_, in.durable); !cleared)
    log::warn("{}: {}", name(), cleared.error().message);
  crash_point("trainer.checkpoint.removed");
}

/// The cause before its echoes: ranks that lose this one report that, too.
void trainer::fail_with(error why) {
  const auto reason = why.message;
  if (options_.restarts && (why.code == errc::peer_lost || why.code == errc::timed_out))
    why.code = errc::restart;
  crash_point("trainer.failed");
  if (!options_.breaker || !options_.breaker->is_broken()) // else it is only an echo
    tell(supervisor_, run_failed{name(), std::move(why)});
  if (ranks_)
    ranks_->abort(reason);
  held_.clear();
  quit();
}

} // namespace millrace
