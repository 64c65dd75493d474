// SPDX-License-Identifier: Apache-2.0
#include "actors/pipeline.hpp"

#include <algorithm>
#include <utility>

#include "actors/assembler/assembler.hpp"
#include "actors/packer/packer.hpp"
#include "actors/planner/planner.hpp"
#include "actors/reader/env_reader.hpp"
#include "actors/scorer/scorer.hpp"
#include "actors/trainer/feeder.hpp"
#include "actors/trainer/trainer.hpp"
#include "runtime/machine_memory.hpp"

namespace millrace {

namespace {

caf::actor spawn_planner(caf::actor_system &system, const caf::actor &supervisor,
                         const pipeline_parts &parts) {
  const auto &config = *parts.config;
  planner_options options;
  options.batch = config.batch;
  options.limits = config.planner;
  options.plan = config.plan;
  options.deterministic = config.deterministic;
  options.readers = config.instances.env_readers;
  options.max_steps = parts.max_steps;
  options.memory_limit = effective_memory_limit(config.memory_limit);
  return system.spawn<planner>(parts.context, std::move(options), supervisor, parts.counters);
}

/// True once `actor` has ended; false if it has not by the deadline.
bool wait_for_end(caf::scoped_actor &self, const caf::actor &actor,
                  std::chrono::steady_clock::time_point deadline) {
  self->monitor(actor);
  for (bool ended = false; !ended;) {
    const auto left = deadline - std::chrono::steady_clock::now();
    if (left <= left.zero())
      return false;
    self->receive([&](const caf::down_msg &down) { ended = down.source == actor.address(); },
                  caf::after(left) >> [] {});
  }
  return true;
}

std::vector<caf::actor> spawn_trainers(caf::actor_system &system, const caf::actor &planner,
                                       const caf::actor &supervisor, const pipeline_parts &parts) {
  std::vector<caf::actor> out;
  for (std::uint32_t rank = 0; rank < parts.config->plan.ranks; ++rank)
    out.push_back(system.spawn<trainer, caf::detached>(
        parts.context, trainer_options{.rank = rank, .join = parts.join[rank], .dump = parts.dump},
        trainer_peers{planner, supervisor}, parts.counters));
  return out;
}

std::vector<caf::actor> spawn_feeders(caf::actor_system &system, const caf::actor &planner,
                                      const std::vector<caf::actor> &trainers,
                                      const caf::actor &supervisor, const pipeline_parts &parts) {
  std::vector<caf::actor> out;
  for (std::uint32_t rank = 0; rank < trainers.size(); ++rank)
    out.push_back(system.spawn<feeder>(
        parts.context, rank, feeder_peers{planner, trainers[rank], supervisor}, parts.counters));
  return out;
}

std::vector<caf::actor> spawn_readers(caf::actor_system &system,
                                      std::vector<recording_reader> files,
                                      const env_reader_peers &peers, const pipeline_parts &parts) {
  const auto &config = *parts.config;
  env_reader_options options;
  options.count = config.instances.env_readers;
  options.vocab_size = config.vocab_size;
  options.pace = config.source.pace;
  options.sizes.other = config.env_default.group_size;
  for (const auto &[name, env] : config.envs)
    options.sizes.by_env.emplace(name, env.group_size);
  std::vector<caf::actor> out;
  for (auto &file : files) {
    out.push_back(system.spawn<env_reader>(parts.context, options, std::move(file), peers,
                                           parts.counters, parts.refused));
    ++options.index;
  }
  return out;
}

} // namespace

result<pipeline> start_pipeline(caf::actor_system &system, const caf::actor &supervisor,
                                const pipeline_parts &parts) {
  const auto &config = *parts.config;
  std::vector<recording_reader> files;
  for (std::uint32_t i = 0; i < config.instances.env_readers; ++i) {
    auto file = recording_reader::open(parts.recording);
    if (!file)
      return tl::unexpected(std::move(file).error());
    files.push_back(std::move(*file));
  }
  pipeline out;
  out.planner = spawn_planner(system, supervisor, parts);
  auto trainers = spawn_trainers(system, out.planner, supervisor, parts);
  auto feeders = spawn_feeders(system, out.planner, trainers, supervisor, parts);
  std::vector<caf::actor> packers;
  for (std::uint32_t i = 0; i < config.instances.packers; ++i)
    packers.push_back(system.spawn<packer>(parts.context, i, supervisor, parts.counters));
  std::vector<caf::actor> scorers;
  for (std::uint32_t i = 0; i < config.instances.scorers; ++i)
    scorers.push_back(
        system.spawn<scorer>(parts.context, i, parts.config, out.planner, parts.counters));
  std::vector<caf::actor> assemblers;
  for (std::uint32_t i = 0; i < config.instances.assemblers; ++i)
    assemblers.push_back(system.spawn<assembler>(
        parts.context, assembler_options{i, config.instances.env_readers, config.plan.seq_len},
        assembler_peers{scorers, out.planner}, parts.counters));
  auto readers =
      spawn_readers(system, std::move(files), {assemblers, out.planner, supervisor}, parts);
  caf::anon_send(out.planner, start_planner{readers, packers, feeders});
  out.stages = {{"env-reader", std::move(readers)}, {"assembler", std::move(assemblers)},
                {"scorer", std::move(scorers)},     {"planner", {out.planner}},
                {"packer", std::move(packers)},     {"feeder", std::move(feeders)},
                {"trainer", std::move(trainers)}};
  return out;
}

std::vector<std::string> shut_down(std::span<const actor_stage> stages, caf::scoped_actor &self,
                                   std::chrono::steady_clock::time_point deadline) {
  std::vector<std::string> alive;
  for (const auto &one : stages) {
    for (const auto &actor : one.actors)
      caf::anon_send_exit(actor, caf::exit_reason::user_shutdown);
    for (std::size_t i = 0; i < one.actors.size(); ++i)
      if (!wait_for_end(self, one.actors[i], deadline))
        alive.push_back(one.actors.size() == 1 ? one.name : fmt::format("{} {}", one.name, i));
  }
  return alive;
}

} // namespace millrace
