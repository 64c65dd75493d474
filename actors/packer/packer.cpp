// SPDX-License-Identifier: Apache-2.0
#include "actors/packer/packer.hpp"

#include <utility>

namespace millrace {

packer::packer(caf::actor_config &config, const actor_context &context, std::uint32_t index,
               caf::actor supervisor, std::shared_ptr<run_counters> counters)
    : stage_actor(config, context, fmt::format("packer {}", index)),
      supervisor_(std::move(supervisor)), counters_(std::move(counters)) {}

caf::behavior packer::make_behavior() { return {on(&packer::take_bin), on(&packer::gather_bin)}; }

void packer::take_bin(const pack_bin &in) {
  if (const auto started = start(in); !started)
    give_up(started.error());
}

status packer::start(const pack_bin &in) {
  auto plan = parse<wire::BinPlan>(in.plan);
  if (!plan)
    return tl::unexpected(std::move(plan).error());
  const auto needed = episodes_needed(**plan);
  if (!needed)
    return tl::unexpected(needed.error());
  if (needed->size() != in.groups.size())
    return fail(errc::bad_value, "a bin lists {} groups and comes with {}", needed->size(),
                in.groups.size());
  job work{.plan = std::move(*plan), .feeder = in.feeder, .groups = {}, .missing = needed->size()};
  for (const auto &group : in.groups) {
    auto annotations = parse<wire::GroupAnnotations>(group.annotations);
    if (!annotations)
      return tl::unexpected(std::move(annotations).error());
    work.groups.push_back({std::move(*annotations), {}});
  }
  const auto id = next_job_++;
  jobs_.emplace(id, std::move(work));
  for (std::size_t i = 0; i < in.groups.size(); ++i) {
    const auto &members = (*needed)[i];
    request(in.groups[i].assembler, caf::infinite, fetch_episodes{in.groups[i].group, members})
        .then([this, id, i,
               members](const episodes_fetched &answer) { store(id, i, members, answer); },
              [this](const caf::error &why) {
                give_up({errc::peer_lost, "an assembler is gone: " + caf::to_string(why)});
              });
  }
  return {};
}

void packer::store(std::uint64_t id, std::size_t group, const std::vector<std::uint32_t> &members,
                   const episodes_fetched &answer) {
  if (!answer.problem.empty()) {
    give_up({errc::not_found, answer.problem});
    return;
  }
  auto &work = jobs_.at(id);
  for (std::size_t i = 0; i < members.size(); ++i)
    work.groups[group].episodes.emplace(members[i], answer.episodes[i]);
  if (--work.missing == 0)
    send(this, bin_fetched{id});
}

void packer::gather_bin(const bin_fetched &in) {
  const stage_meter::timer timer(counters_->stages.pack);
  const auto node = jobs_.extract(in.job);
  const auto &work = node.mapped();
  const auto &plan = *work.plan;
  auto sources = make_bin_sources(plan, work.groups);
  if (!sources) {
    give_up(sources.error());
    return;
  }
  auto parts = gather(sources->plan, counters_->memory);
  if (!parts) {
    give_up(parts.error());
    return;
  }
  for (const auto &part : *parts)
    counters_->stages.pack.bytes += part.size();
  send(work.feeder, micro_batch_packed{plan.step(), plan.rank(), plan.index(), std::move(*parts)});
}

void packer::give_up(const error &why) { send(supervisor_, run_failed{name(), why}); }

} // namespace millrace
