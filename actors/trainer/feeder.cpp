// SPDX-License-Identifier: Apache-2.0
#include "actors/trainer/feeder.hpp"

#include <utility>

namespace millrace {

feeder::feeder(caf::actor_config &config, const actor_context &context, std::uint32_t rank,
               feeder_peers peers, std::shared_ptr<run_counters> counters)
    : stage_actor(config, context, fmt::format("feeder {}", rank)), rank_(rank),
      peers_(std::move(peers)), counters_(std::move(counters)) {}

caf::behavior feeder::make_behavior() {
  return {on(&feeder::expect), on(&feeder::take), on(&feeder::commit)};
}

void feeder::expect(const stage_step &in) {
  steps_[in.step].expected = in.micro_batches;
  stage_if_complete(in.step);
}

void feeder::take(const micro_batch_packed &in) {
  auto batch = [&] {
    const stage_meter::timer timer(counters_->stages.trainer_decode);
    return micro_batch::parse(in.parts, counters_->memory);
  }();
  if (!batch) {
    give_up(batch.error());
    return;
  }
  std::uint64_t bytes = 0;
  for (const auto &part : in.parts)
    bytes += part.size();
  counters_->stages.trainer_decode.bytes += bytes;
  const auto digest = [&] {
    const stage_meter::timer timer(counters_->stages.digest);
    widen(*batch, scratch_);
    return digest_of(scratch_);
  }();
  counters_->stages.digest.bytes += bytes;
  auto &step = steps_[in.step];
  step.wire_bytes += bytes;
  const auto [at, is_new] = step.here.try_emplace(in.index, entry{std::move(*batch), digest});
  if (!is_new) {
    give_up(
        {errc::conflict, fmt::format("micro batch {} of step {} came twice", in.index, in.step)});
    return;
  }
  stage_if_complete(in.step);
}

void feeder::stage_if_complete(std::uint64_t number) {
  auto &step = steps_[number];
  if (step.staged || step.expected != step.here.size())
    return;
  step.staged = true;
  step_staged answer{number, rank_, {}, step.wire_bytes};
  for (const auto &[index, one] : step.here)
    answer.digests.push_back(one.digest);
  send(peers_.planner, std::move(answer));
}

void feeder::commit(const commit_step &in) {
  MILLRACE_ASSERT(in.step == last_committed_ + 1, "step {} is committed after step {}", in.step,
                  last_committed_);
  last_committed_ = in.step;
  auto step = std::move(steps_.extract(in.step).mapped());
  train_step work{in.step, in.step_digest, {}};
  for (auto &[index, one] : step.here)
    work.micro_batches.push_back(std::move(one.batch));
  send(peers_.trainer, std::move(work));
}

void feeder::give_up(const error &why) { send(peers_.supervisor, run_failed{name(), why}); }

} // namespace millrace
