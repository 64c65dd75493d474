// SPDX-License-Identifier: Apache-2.0
#include "actors/trainer/feeder.hpp"

#include <utility>

#include "runtime/crash_point.hpp"
#include "runtime/log.hpp"

namespace millrace {

feeder::feeder(caf::actor_config &config, const actor_context &context, feeder_options options,
               feeder_peers peers, std::shared_ptr<run_counters> counters)
    : stage_actor(config, context, fmt::format("feeder-{}", options.rank)),
      options_(std::move(options)), peers_(std::move(peers)), counters_(std::move(counters)) {}

caf::behavior feeder::make_behavior() {
  show_wait();
  return {on(&feeder::greet),      on(&feeder::take_loaded),   on(&feeder::begin),
          on(&feeder::end),        on(&feeder::commit),        on(&feeder::take_trained),
          on(&feeder::take_saved), on(&feeder::take_recorded), on(&feeder::finish),
          on(&feeder::hear),       on(&feeder::expect),        on(&feeder::take_offer),
          on(&feeder::take),       on(&feeder::lose),          on(&feeder::look_again)};
}

void feeder::on_exit() {
  steps_.clear();
  peers_ = {};
}

/// A rank that is part of no trainer job yet stands where the planner's last checkpoint is.
void feeder::greet(const planner_hello &in) {
  const auto former = standing_.leader();
  const auto is_new = standing_.obey(in.claim);
  if (!is_new) {
    log::warn("{}: a planner is refused: {}", name(), is_new.error().message);
    tell(in.planner ? in.planner : peers_.planner,
         planner_refused{in.claim, is_new.error().message});
    return;
  }
  if (former.epoch != 0 && former.folder != in.claim.folder)
    leave(former, in);
  if (in.planner)
    peers_.planner = in.planner;
  if (*is_new)
    drop_staged(former);
  crash_point("feeder.hello.taken");
  if (options_.told)
    for (auto &notice : options_.told())
      tell(peers_.planner, std::move(notice));
  if (standing_.generation() == 0)
    stand_at(in.durable);
  else
    tell_state();
  show_wait();
}

/// Nothing binds it to the folder of the planner before: that one hears of it, if it lives.
void feeder::leave(const planner_claim &former, const planner_hello &in) {
  log::warn("{}: the planner of folder {} leads, and that of {} no more", name(),
            in.claim.folder.hex(), former.folder.hex());
  if (in.planner != peers_.planner)
    tell(peers_.planner,
         planner_refused{former, fmt::format("another planner leads this run: folder {}, epoch {}",
                                             in.claim.folder.hex(), in.claim.epoch)});
  loading_.reset();
}

void feeder::stand_at(std::uint64_t durable) {
  durable_ = durable;
  if (standing_.loaded() == durable) {
    tell_state();
  } else if (loading_ != durable) {
    loading_ = durable;
    tell(peers_.trainer, load_checkpoint{durable, self_of(*this), standing_.leader().folder});
  }
}

void feeder::take_loaded(const checkpoint_loaded &in) {
  if (standing_.generation() != 0 || in.step != durable_)
    return; // another planner has asked for another one
  loading_.reset();
  standing_.load(in.step);
  forget_below(standing_.next());
  crash_point("feeder.checkpoint.loaded");
  tell_state();
  show_wait();
}

void feeder::tell_state() {
  tell(peers_.planner, standing_.state(options_.rank));
  crash_point("feeder.state.told");
}

void feeder::begin(const begin_generation &in) {
  if (is_late(in.claim))
    return;
  const auto begun = standing_.begin(in);
  if (!begun) {
    give_up(begun.error());
    return;
  }
  if (!*begun)
    return;
  crash_point("feeder.generation.begun");
  tell(peers_.trainer, begin_training{in.generation, self_of(*this), in.claim.folder});
  fetch_what_fits();
  show_wait();
}

void feeder::end(const end_generation &in) {
  if (is_late(in.claim) || standing_.generation() == 0 || in.generation != standing_.generation())
    return;
  crash_point("feeder.generation.ended");
  give_up({errc::restart, fmt::format("generation {} ends: {}", in.generation, in.why)});
}

void feeder::commit(const commit_step &in) {
  // An older planner's. If its log has it, the one that leads now commits the step again.
  if (is_late(in.claim))
    return;
  const auto found = steps_.find(in.step);
  const auto is_new = standing_.commit(in, found != steps_.end() && found->second.staged);
  if (!is_new) {
    give_up(is_new.error());
    return;
  }
  if (!*is_new) {
    ++counters_->repeats;
    return;
  }
  auto step = std::move(steps_.extract(found).mapped());
  train_step work{in.step, in.step_digest, {}, {}, in.staleness};
  work.micro_batches.reserve(step.here.size());
  for (auto &[index, one] : step.here) {
    work.micro_batches.push_back(std::move(one.batch));
    work.mine += one.counts;
  }
  crash_point("feeder.commit.taken");
  tell(peers_.trainer, std::move(work));
  fetch_what_fits();
}

void feeder::take_trained(const step_trained &in) {
  standing_.train(in);
  crash_point("feeder.trained.taken");
  tell(peers_.planner, in);
  crash_point("feeder.trained.forwarded");
}

void feeder::take_saved(const checkpoint_saved &in) {
  standing_.save(in);
  crash_point("feeder.saved.taken");
  tell(peers_.planner, in);
  crash_point("feeder.saved.forwarded");
}

/// An older planner's may speak of steps that were rolled back since.
void feeder::take_recorded(const steps_recorded &in) {
  if (is_late(in.claim))
    return;
  standing_.record(in);
  crash_point("feeder.recorded.taken");
  if (in.durable > durable_) {
    durable_ = in.durable;
    tell(peers_.trainer, in);
  }
}

void feeder::finish(const finish_training &in) {
  if (!is_late(in.claim))
    tell(peers_.trainer, in);
}

void feeder::hear(const rank_notice &in) {
  if (options_.noticed)
    options_.noticed(in);
}

void feeder::give_up(const error &why) { tell(peers_.supervisor, run_failed{name(), why}); }

void feeder::expect(const stage_step &in) {
  if (is_late(in.claim) || in.step <= standing_.last_committed())
    return;
  steps_[in.step].expected = in.micro_batches;
  stage_if_complete(in.step);
}

/// Whether something is of a planner that leads no more, or of another folder's. One of a higher
/// epoch than is known leads from now on, also if its work comes before its hello.
bool feeder::is_late(const planner_claim &claim) {
  const auto former = standing_.leader();
  if (standing_.meet(claim))
    drop_staged(former);
  return claim != standing_.leader();
}

/// Another planner than `former`, of which they are, cuts these steps anew.
void feeder::drop_staged(const planner_claim &former) {
  for (auto &[number, step] : steps_)
    release(number, step, former);
  steps_.clear();
  crash_point("feeder.steps.dropped");
}

void feeder::forget_below(std::uint64_t number) {
  while (!steps_.empty() && steps_.begin()->first < number) {
    release(steps_.begin()->first, steps_.begin()->second, standing_.leader());
    steps_.erase(steps_.begin());
  }
}

/// Packers need not keep what they have offered of a step.
void feeder::release(std::uint64_t number, step_state &step, const planner_claim &claim) {
  for (const auto &[index, one] : step.offers) {
    if (one.asked)
      asked_bytes_ -= one.bytes;
    tell(one.packer, micro_batch_taken{{number, options_.rank, index, claim}});
  }
  step.offers.clear();
}

/// Offers of what is here already come from a packer that did the work of a lost one again.
void feeder::take_offer(const micro_batch_ready &in) {
  const auto &[number, rank, index, claim] = in.bin;
  if (rank != options_.rank) {
    give_up(
        {errc::conflict, fmt::format("rank {} got a micro batch of rank {}", options_.rank, rank)});
    return;
  }
  if (is_late(claim) || number <= standing_.last_committed() ||
      steps_[number].here.contains(index)) {
    tell(in.packer, micro_batch_taken{in.bin});
    return;
  }
  crash_point("feeder.offer.taken");
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
  if (standing_.generation() == 0) {
    if (loading_)
      waits.set(name(), "checkpoint", fmt::format("the checkpoint of step {}", *loading_),
                peers_.trainer.id().name);
    else
      waits.set(name(), "generation", "all ranks to be there", "planner");
    return;
  }
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
  auto number = standing_.next();
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
      tell(one.packer,
           fetch_micro_batch{{number, options_.rank, index, standing_.leader()}, self_of(*this)});
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

void feeder::take(const micro_batch_packed &in) {
  if (is_late(in.bin.claim) || in.bin.step <= standing_.last_committed())
    return;
  auto batch = [&] {
    const stage_meter::timer timer(counters_->stages.trainer_decode);
    return micro_batch::parse(in.parts, counters_->memory);
  }();
  if (!batch) {
    give_up(batch.error());
    return;
  }
  if (const bin_ref is{batch->step(), batch->rank(), batch->index(), in.bin.claim};
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
  crash_point("feeder.micro_batch.taken");
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
  const auto [at, is_new] =
      step.here.try_emplace(bin.index, entry{std::move(batch), digest, count_components(scratch_)});
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
  step_staged answer{number, options_.rank, {}, step.wire_bytes, standing_.leader().epoch};
  for (const auto &[index, one] : step.here)
    answer.digests.push_back(one.digest);
  crash_point("feeder.step.staged");
  tell(peers_.planner, std::move(answer));
  crash_point("feeder.staged.told");
  show_wait();
}

} // namespace millrace
