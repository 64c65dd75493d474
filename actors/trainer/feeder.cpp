// SPDX-License-Identifier: Apache-2.0
#include "actors/trainer/feeder.hpp"

#include <utility>

namespace millrace {

feeder::feeder(caf::actor_config &config, const actor_context &context, feeder_options options,
               feeder_peers peers, std::shared_ptr<run_counters> counters)
    : stage_actor(config, context, fmt::format("feeder-{}", options.rank)),
      options_(std::move(options)), peers_(std::move(peers)), counters_(std::move(counters)) {}

caf::behavior feeder::make_behavior() {
  show_wait();
  return {on(&feeder::expect), on(&feeder::take_offer), on(&feeder::take), on(&feeder::commit),
          on(&feeder::lose),   on(&feeder::look_again), on(&feeder::hear)};
}

void feeder::expect(const stage_step &in) {
  if (in.step <= last_committed_)
    return;
  steps_[in.step].expected = in.micro_batches;
  stage_if_complete(in.step);
}

/// Offers of what is here already come from a packer that did the work of a lost one again.
void feeder::take_offer(const micro_batch_ready &in) {
  const auto [number, rank, index, epoch] = in.bin;
  if (rank != options_.rank) {
    give_up(
        {errc::conflict, fmt::format("rank {} got a micro batch of rank {}", options_.rank, rank)});
    return;
  }
  if (number <= last_committed_ || steps_[number].here.contains(index)) {
    tell(in.packer, micro_batch_taken{in.bin});
    return;
  }
  auto &place = steps_[number].offers[index];
  if (place.packer == in.packer && place.asked)
    return; // it is on its way
  if (place.asked)
    asked_bytes_ -= place.bytes;
  if (place.packer && place.packer != in.packer) // else it would keep its own for ever
    tell(place.packer, micro_batch_taken{in.bin});
  place = {in.packer, in.bytes};
  fetch_what_fits();
}

/// What the step that is needed next waits for.
void feeder::show_wait() {
  auto &waits = *counters_->waits;
  const auto number = next_to_stage();
  const auto found = steps_.find(number);
  const auto topic = fmt::format("step {}", number);
  if (found == steps_.end() || !found->second.expected)
    waits.set(name(), topic, topic, "planner");
  else
    waits.set(name(), topic,
              fmt::format("has {}/{} micro batches of step {}", found->second.here.size(),
                          *found->second.expected, number),
              found->second.offers.empty() ? std::string_view("packer")
                                           : found->second.offers.begin()->second.packer.id().name);
}

/// The lowest step that is not staged: only it brings the run on.
std::uint64_t feeder::next_to_stage() const {
  auto number = last_committed_ + 1;
  for (auto at = steps_.find(number); at != steps_.end() && at->second.staged;
       at = steps_.find(number))
    ++number;
  return number;
}

void feeder::fetch_what_fits() {
  const auto needed = next_to_stage();
  for (auto &[number, step] : steps_)
    for (auto &[index, one] : step.offers) {
      if (one.asked)
        continue;
      if (number != needed &&
          counters_->memory->held + asked_bytes_ + one.bytes > options_.memory_limit) {
        if (!std::exchange(looking_, true))
          delayed_send(this, look_for_room::pause, look_for_room{});
        return;
      }
      one.asked = true;
      asked_bytes_ += one.bytes;
      tell(one.packer, fetch_micro_batch{{number, options_.rank, index, 0}, self_of(*this)});
    }
}

void feeder::look_again(const look_for_room &) {
  looking_ = false;
  fetch_what_fits();
}

/// What it held must be gathered by another packer, which will offer it.
void feeder::lose(const peer_down &in) {
  for (auto &[number, step] : steps_)
    std::erase_if(step.offers, [&](const auto &place) {
      const auto &[packer, bytes, asked] = place.second;
      if (packer.id() != in.who.id())
        return false;
      if (asked)
        asked_bytes_ -= bytes;
      return true;
    });
  fetch_what_fits();
}

void feeder::hear(const rank_notice &in) {
  if (options_.noticed)
    options_.noticed(in);
}

void feeder::take(const micro_batch_packed &in) {
  if (in.bin.step <= last_committed_)
    return;
  auto batch = [&] {
    const stage_meter::timer timer(counters_->stages.trainer_decode);
    return micro_batch::parse(in.parts, counters_->memory);
  }();
  if (!batch) {
    give_up(batch.error());
    return;
  }
  if (const bin_ref is{batch->step(), batch->rank(), batch->index(), in.bin.epoch};
      is != in.bin || is.rank != options_.rank) {
    give_up({errc::conflict,
             fmt::format("micro batch {} of step {} for rank {} came as micro batch {} of step {} "
                         "for rank {}",
                         is.index, is.step, is.rank, in.bin.index, in.bin.step, in.bin.rank)});
    return;
  }
  std::uint64_t bytes = 0;
  for (const auto &part : in.parts)
    bytes += part.size();
  counters_->stages.trainer_decode.bytes += bytes;
  auto &step = steps_[in.bin.step];
  if (const auto found = step.offers.find(in.bin.index); found != step.offers.end()) {
    if (found->second.asked)
      asked_bytes_ -= found->second.bytes;
    tell(found->second.packer, micro_batch_taken{in.bin});
    step.offers.erase(found);
  }
  keep(in.bin, std::move(*batch), bytes);
  fetch_what_fits();
}

void feeder::keep(const bin_ref &bin, micro_batch batch, std::uint64_t bytes) {
  const auto digest = [&] {
    const stage_meter::timer timer(counters_->stages.digest);
    widen(batch, scratch_);
    return digest_of(scratch_);
  }();
  counters_->stages.digest.bytes += bytes;
  auto &step = steps_[bin.step];
  const auto [at, is_new] = step.here.try_emplace(bin.index, entry{std::move(batch), digest});
  if (is_new) {
    step.wire_bytes += bytes;
    stage_if_complete(bin.step);
  } else if (at->second.digest != digest) {
    give_up({errc::conflict,
             fmt::format("micro batch {} of step {} came twice, with digests {} and {}", bin.index,
                         bin.step, at->second.digest.digest.hex(), digest.digest.hex())});
  } else {
    ++counters_->repeats;
  }
}

void feeder::stage_if_complete(std::uint64_t number) {
  auto &step = steps_[number];
  if (step.staged || step.expected != step.here.size()) {
    show_wait();
    return;
  }
  step.staged = true;
  step_staged answer{number, options_.rank, {}, step.wire_bytes};
  for (const auto &[index, one] : step.here)
    answer.digests.push_back(one.digest);
  tell(peers_.planner, std::move(answer));
  show_wait();
}

void feeder::commit(const commit_step &in) {
  if (in.step != last_committed_ + 1 || !steps_.contains(in.step)) {
    give_up({errc::conflict,
             fmt::format("step {} is committed after step {}", in.step, last_committed_)});
    return;
  }
  last_committed_ = in.step;
  auto step = std::move(steps_.extract(in.step).mapped());
  train_step work{in.step, in.step_digest, {}};
  for (auto &[index, one] : step.here)
    work.micro_batches.push_back(std::move(one.batch));
  tell(peers_.trainer, std::move(work));
  fetch_what_fits();
}

void feeder::give_up(const error &why) { tell(peers_.supervisor, run_failed{name(), why}); }

} // namespace millrace
