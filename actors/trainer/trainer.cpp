// SPDX-License-Identifier: Apache-2.0
#include "actors/trainer/trainer.hpp"

#include <array>
#include <utility>

#include "actors/trainer/agreement.hpp"
#include "actors/trainer/dump.hpp"

namespace millrace {

trainer::trainer(caf::actor_config &config, const actor_context &context, trainer_options options,
                 trainer_peers peers, std::shared_ptr<run_counters> counters)
    : stage_actor(config, context, fmt::format("trainer-{}", options.rank)),
      options_(std::move(options)), peers_(std::move(peers)), counters_(std::move(counters)) {}

caf::behavior trainer::make_behavior() {
  wait_for(1);
  return {on(&trainer::train)};
}

void trainer::wait_for(std::uint64_t step) {
  const auto what = fmt::format("step {}", step);
  counters_->waits->set(name(), what, what, "planner");
}

void trainer::train(const train_step &in) {
  counters_->waits->set(name(), fmt::format("ranks {}", in.step),
                        fmt::format("the other ranks in step {}", in.step), "trainer");
  auto totals = apply(in);
  if (!totals) {
    // The cause before its echoes: ranks that lose this one report that, too.
    tell(peers_.supervisor, run_failed{name(), totals.error()});
    if (ranks_)
      ranks_->abort(totals.error().message);
    quit();
    return;
  }
  tell(peers_.planner, step_trained{in.step, options_.rank, *totals});
  wait_for(in.step + 1);
}

/// The order of a step: agree, reduce the counts that losses divide by, work, and a last exchange
/// of fixed size, after which every rank knows that every rank has applied the step.
result<component_totals> trainer::apply(const train_step &in) {
  if (!ranks_) {
    auto joined = options_.join();
    if (!joined)
      return tl::unexpected(std::move(joined).error());
    ranks_ = std::move(*joined);
  }
  MILLRACE_TRY(agree(*ranks_, in.step, in.step_digest, in.micro_batches.size()));
  const auto mine = widen_all(in);
  if (!mine)
    return tl::unexpected(mine.error());
  std::array<std::int64_t, 3> sums{static_cast<std::int64_t>(mine->rl),
                                   static_cast<std::int64_t>(mine->ce),
                                   static_cast<std::int64_t>(mine->ref_kl)};
  MILLRACE_TRY(ranks_->all_reduce({"token counts", in.step}, std::span(sums), reduction::sum));
  std::array<std::int64_t, 1> applied{1};
  MILLRACE_TRY(ranks_->all_reduce({"trained", in.step}, std::span(applied), reduction::sum));
  return component_totals{sums[0], sums[1], sums[2]};
}

result<component_counts> trainer::widen_all(const train_step &in) {
  component_counts counts;
  for (const auto &batch : in.micro_batches) {
    {
      const stage_meter::timer timer(counters_->stages.tensors);
      widen(batch, tensors_);
      counts += count_components(tensors_);
    }
    counters_->stages.tensors.bytes += tensors_.bytes();
    if (!options_.dump.empty())
      MILLRACE_TRY(dump(options_.dump, tensors_));
  }
  return counts;
}

} // namespace millrace
