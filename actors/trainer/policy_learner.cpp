// SPDX-License-Identifier: Apache-2.0
#include "actors/trainer/policy_learner.hpp"

#include <chrono>
#include <string_view>
#include <system_error>
#include <utility>

#include "actors/loss/token_stats.hpp"
#include "actors/trainer/checkpoint_files.hpp"
#include "actors/trainer/dump.hpp"
#include "actors/trainer/loss_view.hpp"
#include "actors/trainer/metrics_file.hpp"
#include "runtime/log.hpp"

namespace millrace {

namespace {

using clock = std::chrono::steady_clock;

/// Adds the time of its own life to a number of seconds.
class stopwatch {
public:
  explicit stopwatch(double &seconds) : seconds_(seconds) {}
  stopwatch(const stopwatch &) = delete;
  stopwatch &operator=(const stopwatch &) = delete;
  ~stopwatch() { seconds_ += std::chrono::duration<double>(clock::now() - begun_).count(); }

private:
  double &seconds_;
  const clock::time_point begun_ = clock::now();
};

loss_scales scales_of(const component_totals &totals) {
  return {static_cast<std::uint64_t>(totals.rl), static_cast<std::uint64_t>(totals.ce),
          static_cast<std::uint64_t>(totals.ref_kl)};
}

/// What a micro batch is, without what a policy makes of it.
void count(const micro_batch &batch, const micro_batch_tensors &tensors, step_metrics &metrics) {
  ++metrics.micro_batches;
  metrics.tokens += tensors.tokens();
  metrics.tensor_bytes += tensors.bytes();
  metrics.wire_bytes += batch.bytes();
  metrics.padding += static_cast<std::uint64_t>(tensors.padding);
  if (batch.dummy()) {
    ++metrics.dummies;
    return;
  }
  for (std::size_t i = 0; i < batch.sequences(); ++i) {
    auto &env = metrics.envs[tensors.env_names[i]];
    ++env.sequences;
    env.tokens += batch.sequence_lengths()[i];
    if (!batch.rewards().empty())
      env.reward += static_cast<double>(batch.rewards()[i]);
  }
}

} // namespace

policy_learner::policy_learner(policy_learner_options options, std::unique_ptr<policy> what,
                               std::shared_ptr<run_counters> counters)
    : options_(std::move(options)), policy_(std::move(what)), counters_(std::move(counters)),
      exporter_(options_.exports, options_.rank) {}

status policy_learner::begin(std::uint64_t generation) {
  generation_ = generation;
  return {};
}

void policy_learner::reset() {
  policy_->reset();
  applied_ = 0;
}

status policy_learner::step(const learner_step &in) {
  step_metrics metrics;
  if (exporter_.on())
    MILLRACE_TRY(exporter_.begin(in.step));
  for (const auto &batch : in.micro_batches)
    if (auto trained = train(in, batch, metrics); !trained)
      return with_context(
          std::move(trained).error(),
          fmt::format("step {}, rank {}, micro batch {}", in.step, options_.rank, batch.index()));
  {
    const stopwatch time(metrics.seconds.update);
    MILLRACE_TRY(policy_->step({in.step, in.digest, in.totals, in.ranks}));
  }
  applied_ = in.step;
  if (!options_.dump.empty() && options_.rank == 0)
    MILLRACE_TRY(dump_parameters(in.step));
  if (exporter_.on())
    MILLRACE_TRY(exporter_.finish(in.ranks));
  metrics.held_bytes = counters_->memory->held;
  return report(in, metrics);
}

status policy_learner::train(const learner_step &in, const micro_batch &batch,
                             step_metrics &metrics) {
  {
    const stopwatch time(metrics.seconds.widen);
    const stage_meter::timer timer(counters_->stages.tensors);
    widen(batch, tensors_);
  }
  counters_->stages.tensors.bytes += tensors_.bytes();
  count(batch, tensors_, metrics);
  if (!options_.dump.empty())
    MILLRACE_TRY(dump(options_.dump, tensors_));
  return policy_->learns() || exporter_.on() ? look_at(in, metrics) : status();
}

/// The policy's way through the micro batch that was widened last.
status policy_learner::look_at(const learner_step &in, step_metrics &metrics) {
  const auto batch = batch_of(tensors_);
  logprobs_.resize(tensors_.tokens());
  entropy_.resize(tensors_.tokens());
  {
    const stopwatch time(metrics.seconds.forward);
    MILLRACE_TRY(policy_->forward(batch, logprobs_, entropy_));
  }
  const auto columns = loss_view(tensors_);
  if (policy_->learns()) {
    auto loss = [&] {
      const stopwatch time(metrics.seconds.loss);
      return compute_loss<float>(columns, logprobs_, options_.loss, scales_of(in.totals));
    }();
    if (!loss)
      return tl::unexpected(std::move(loss).error());
    const auto stats = stats_of(columns, logprobs_, entropy_);
    for (std::size_t i = 0; i < stats.size(); ++i)
      if (const auto env = metrics.envs.find(tensors_.env_names[i]); env != metrics.envs.end()) {
        env->second.losses += loss->sequences[i];
        env->second.stats += stats[i];
      }
    note(*loss, metrics);
    const stopwatch time(metrics.seconds.backward);
    MILLRACE_TRY(policy_->backward(batch, loss->grad_trainer_logprobs));
  }
  return exporter_.on() ? exporter_.add(tensors_, options_.loss, logprobs_, entropy_) : status();
}

void policy_learner::note(const loss_result<float> &loss, step_metrics &metrics) const {
  for (const auto &one : loss.non_finites) {
    metrics.non_finites.push_back(
        {std::string(one.name), options_.rank, tensors_.index, one.count, one.first});
    log::warn("trainer-{}: step {}, micro batch {}: {} of {} are not finite, the first at {}",
              options_.rank, tensors_.step, tensors_.index, one.count, one.name, one.first);
  }
}

/// A line that cannot be written is missed by people, not by the run.
status policy_learner::report(const learner_step &in, const step_metrics &mine) {
  const auto all = reduce(in.ranks, in.step, mine);
  if (!all)
    return tl::unexpected(all.error());
  if (options_.rank != 0 || options_.metrics.empty())
    return {};
  const auto line = metrics_line({.run = options_.run,
                                  .generation = generation_,
                                  .step = in.step,
                                  .ranks = in.ranks.size(),
                                  .totals = in.totals,
                                  .staleness = in.staleness,
                                  .rl = options_.loss.rl},
                                 *all);
  if (const auto written = append_line(options_.metrics, line); !written)
    log::warn("the metrics of step {} are not written: {}", in.step, written.error().message);
  return {};
}

/// What the policy saves, beside the tensors of the step.
status policy_learner::dump_parameters(std::uint64_t step) {
  const auto folder = options_.dump / fmt::format("step-{:06}", step) / "parameters";
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed)
    return fail(errc::io, "{}: cannot make this folder: {}", folder.string(), failed.message());
  return policy_->save(folder, step);
}

result<std::vector<std::byte>> policy_learner::save(const std::filesystem::path &folder) {
  MILLRACE_TRY(make_empty_folder(folder));
  MILLRACE_TRY(policy_->save(folder, applied_));
  return seal_folder(folder, options_.sync);
}

status policy_learner::load(std::span<const std::byte> saved, const std::filesystem::path &folder,
                            std::uint64_t step) {
  MILLRACE_TRY(check_folder(folder, saved));
  const auto loaded = policy_->load(folder);
  if (!loaded)
    return tl::unexpected(loaded.error());
  if (*loaded != step) {
    const auto found = *loaded;
    reset();
    return fail(errc::conflict, "the policy has applied {} steps; it should be {}", found, step);
  }
  applied_ = step;
  return {};
}

} // namespace millrace
