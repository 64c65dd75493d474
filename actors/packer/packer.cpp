// SPDX-License-Identifier: Apache-2.0
#include "actors/packer/packer.hpp"

#include <utility>

#include "runtime/crash_point.hpp"
#include "runtime/log.hpp"

namespace millrace {

namespace {

bin_ref bin_of(const wire::BinPlan &plan, const planner_claim &claim) {
  return {plan.step(), plan.rank(), plan.index(), claim};
}

std::uint64_t size_of(const message &parts) {
  std::uint64_t sum = 0;
  for (const auto &part : parts)
    sum += part.size();
  return sum;
}

} // namespace

packer::packer(caf::actor_config &config, const actor_context &context, packer_options options,
               peer supervisor, std::shared_ptr<run_counters> counters)
    : stage_actor(config, context, options.name), options_(std::move(options)),
      supervisor_(std::move(supervisor)), counters_(std::move(counters)) {}

caf::behavior packer::make_behavior() {
  return {on(&packer::take_bin), on(&packer::store),      on(&packer::gather_bin),
          on(&packer::give),     on(&packer::forget),     on(&packer::look_again),
          on(&packer::finish),   on(&packer::take_hello), on(&packer::lose)};
}

void packer::take_hello(const planner_hello &in) {
  if (follow(in.claim) || !in.planner)
    return;
  const auto why =
      in.claim.folder == leader_.folder
          ? fmt::format("fenced: epoch {} leads, this is {}", leader_.epoch, in.claim.epoch)
          : fmt::format("another planner leads this run: folder {}, epoch {}", leader_.folder.hex(),
                        leader_.epoch);
  log::warn("{}: a planner is refused: {}", name(), why);
  tell(in.planner, planner_refused{in.claim, why});
}

/// Whether it works for this planner now. Bins bind it to their folder; else it follows whoever
/// comes. What earlier planners, or this one for an earlier trainer job, wanted is wanted by
/// nobody.
bool packer::follow(const planner_claim &claim) {
  if (claim == leader_)
    return true;
  if (claim.folder == leader_.folder ? claim.epoch < leader_.epoch
                                     : !jobs_.empty() || !gathered_.empty())
    return false;
  leader_ = claim;
  drop_all();
  return true;
}

void packer::drop_all() {
  for (const auto &[bin, work] : jobs_)
    stop_fetching(work);
  jobs_.clear();
  gathered_.clear();
  show_wait();
  leave_if_idle();
}

void packer::take_bin(const pack_bin &in) {
  if (!follow(in.claim))
    return;
  auto work = read_order(in);
  if (!work) {
    give_up(work.error());
    return;
  }
  const auto bin = bin_of(*work->plan, in.claim);
  if (const auto here = gathered_.find(bin); here != gathered_.end()) {
    announce(bin, here->second);
    return;
  }
  if (const auto old = jobs_.find(bin); old != jobs_.end()) {
    stop_fetching(old->second);
    jobs_.erase(old);
  }
  jobs_.emplace(bin, std::move(*work));
  begin_what_fits();
  show_wait();
}

result<packer::job> packer::read_order(const pack_bin &in) const {
  auto plan = parse<wire::BinPlan>(in.plan);
  if (!plan)
    return tl::unexpected(std::move(plan).error());
  auto needed = episodes_needed(**plan);
  if (!needed)
    return tl::unexpected(needed.error());
  if (needed->size() != in.groups.size())
    return fail(errc::bad_value, "a bin lists {} groups and comes with {}", needed->size(),
                in.groups.size());
  job work{.plan = std::move(*plan), .order = in, .needed = std::move(*needed), .groups = {}};
  for (const auto &group : in.groups) {
    auto annotations = parse<wire::GroupAnnotations>(group.annotations);
    if (!annotations)
      return tl::unexpected(std::move(annotations).error());
    work.groups.push_back({std::move(*annotations), {}});
  }
  return work;
}

void packer::stop_fetching(const job &work) {
  if (numbers_.erase(work.number) > 0)
    asked_bytes_ -= work.order.source_bytes;
}

/// The first bin of the lowest step must never wait for memory that only a later one could free.
bool packer::may_begin(const bin_ref &bin, const job &work) const {
  if (counters_->memory->held + asked_bytes_ + work.order.source_bytes <= options_.memory_limit)
    return true;
  return numbers_.empty() && (gathered_.empty() || bin.step <= gathered_.begin()->first.step);
}

void packer::begin_what_fits() {
  for (auto &[bin, work] : jobs_) {
    if (work.number != 0 || work.lost)
      continue;
    if (!may_begin(bin, work)) {
      if (!std::exchange(looking_, true))
        delayed_send(this, look_for_room::pause, look_for_room{});
      return;
    }
    fetch(work);
    numbers_.emplace(work.number, bin);
    asked_bytes_ += work.order.source_bytes;
  }
}

/// What the lowest bin waits for.
void packer::show_wait() {
  auto &waits = *counters_->waits;
  if (!jobs_.empty()) {
    const auto &[bin, work] = *jobs_.begin();
    for (std::size_t i = 0; work.number != 0 && i < work.groups.size(); ++i)
      if (work.groups[i].episodes.empty()) {
        const auto &group = work.order.groups[i];
        waits.set(name(), fmt::format("fetch {} {} {} {}", bin.step, bin.rank, bin.index, i),
                  fmt::format("episodes of group {} for step {}", group.group.ordinal, bin.step),
                  group.assembler.id().name);
        return;
      }
    if (work.lost)
      waits.set(name(), fmt::format("lost {} {} {}", bin.step, bin.rank, bin.index),
                fmt::format("word of where a group of step {} is", bin.step), "planner");
    else
      waits.set(name(), "memory", fmt::format("memory to begin a bin of step {}", bin.step),
                work.order.feeder.id().name);
  } else if (!gathered_.empty()) {
    const auto &[bin, what] = *gathered_.begin();
    waits.set(name(), fmt::format("give {} {} {}", bin.step, bin.rank, bin.index),
              fmt::format("rank {} to take a micro batch of step {}", bin.rank, bin.step),
              what.feeder.id().name);
  } else {
    waits.clear(name());
  }
}

void packer::look_again(const look_for_room &) {
  looking_ = false;
  begin_what_fits();
}

void packer::fetch(job &work) {
  work.number = ++last_number_;
  work.missing = work.needed.size();
  for (std::size_t i = 0; i < work.needed.size(); ++i)
    tell(work.order.groups[i].assembler,
         fetch_episodes{work.order.groups[i].group, work.needed[i], self_of(*this), work.number});
  if (work.missing == 0) // a dummy that draws on nothing
    send(this, bin_fetched{work.number});
}

void packer::store(const episodes_fetched &in) {
  const auto known = numbers_.find(in.job);
  if (known == numbers_.end())
    return; // the bin was sent anew, and is fetched from somewhere else
  auto &work = jobs_.at(known->second);
  if (!in.problem.empty()) {
    // The planner knows better, or will: it sends the bin again, or an epoch in which it is void.
    log::warn("{}: {}; it waits for word of where the group is", name(), in.problem);
    stop_fetching(work);
    work.number = 0;
    work.lost = true;
    show_wait();
    return;
  }
  for (std::size_t i = 0; i < work.order.groups.size(); ++i) {
    if (work.order.groups[i].group != in.group)
      continue;
    if (in.episodes.size() != work.needed[i].size() || !work.groups[i].episodes.empty()) {
      give_up({errc::conflict,
               fmt::format("{} episodes of group {} came, {} were asked for", in.episodes.size(),
                           in.group.ordinal, work.needed[i].size())});
      return;
    }
    for (std::size_t k = 0; k < in.episodes.size(); ++k)
      work.groups[i].episodes.emplace(work.needed[i][k], in.episodes[k]);
    if (--work.missing == 0)
      send(this, bin_fetched{in.job});
    return;
  }
}

void packer::gather_bin(const bin_fetched &in) {
  const auto known = numbers_.find(in.job);
  if (known == numbers_.end())
    return;
  const stage_meter::timer timer(counters_->stages.pack);
  const auto bin = known->second;
  const auto node = jobs_.extract(bin);
  const auto &work = node.mapped();
  stop_fetching(work);
  auto sources = make_bin_sources(*work.plan, work.groups);
  if (!sources) {
    give_up(sources.error());
    return;
  }
  auto parts = gather(sources->plan, counters_->memory);
  if (!parts) {
    give_up(parts.error());
    return;
  }
  counters_->stages.pack.bytes += size_of(*parts);
  const auto at = gathered_.emplace(bin, gathered{std::move(*parts), work.order.feeder}).first;
  crash_point("packer.bin.gathered");
  announce(bin, at->second);
  begin_what_fits();
  show_wait();
}

void packer::announce(const bin_ref &bin, const gathered &what) {
  tell(what.feeder, micro_batch_ready{bin, size_of(what.parts), self_of(*this)});
  crash_point("packer.bin.announced");
}

void packer::give(const fetch_micro_batch &in) {
  // One that is not here was taken: the question crossed the answer.
  if (const auto found = gathered_.find(in.bin); found != gathered_.end())
    tell(in.feeder, micro_batch_packed{in.bin, found->second.parts});
  crash_point("packer.bin.given");
}

void packer::forget(const micro_batch_taken &in) {
  gathered_.erase(in.bin);
  begin_what_fits();
  show_wait();
  leave_if_idle();
}

/// What is for a rank that is gone will be fetched by nobody: its job is over.
void packer::lose(const peer_down &in) {
  if (in.what != role::trainer)
    return;
  std::erase_if(jobs_, [&](const auto &one) {
    if (one.second.order.feeder != in.who)
      return false;
    stop_fetching(one.second);
    return true;
  });
  std::erase_if(gathered_, [&](const auto &one) { return one.second.feeder == in.who; });
  begin_what_fits();
  show_wait();
  leave_if_idle();
}

void packer::finish(const drain &) {
  draining_ = true;
  leave_if_idle();
}

void packer::leave_if_idle() {
  if (draining_ && jobs_.empty() && gathered_.empty())
    tell(supervisor_, drained{name()});
}

void packer::give_up(const error &why) { tell(supervisor_, run_failed{name(), why}); }

} // namespace millrace
