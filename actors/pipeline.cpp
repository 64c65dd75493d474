// SPDX-License-Identifier: Apache-2.0
#include "actors/pipeline.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "actors/assembler/assembler.hpp"
#include "actors/packer/packer.hpp"
#include "actors/planner/planner.hpp"
#include "actors/reader/env_reader.hpp"
#include "actors/scorer/scorer.hpp"
#include "actors/trainer/external_learner.hpp"
#include "actors/trainer/feeder.hpp"
#include "actors/trainer/policies.hpp"
#include "actors/trainer/policy_learner.hpp"
#include "actors/trainer/trainer.hpp"
#include "runtime/log.hpp"

namespace millrace {

namespace {

/// Spawns the actors of one process, by role.
class spawner {
public:
  spawner(caf::actor_system &system, peer planner, peer supervisor, const pipeline_parts &parts)
      : system_(system), planner_(std::move(planner)), supervisor_(std::move(supervisor)),
        parts_(parts), config_(*parts.config) {}

  void spawn_planner(std::unique_ptr<run_log> log) {
    if (const auto &plan = config_.plan; !plan.cost_model.empty())
      millrace::log::info("a sequence of n tokens costs {} n + {} n^2 FLOPs, by {}",
                          plan.cost.linear, plan.cost.quadratic, plan.cost_model.string());
    planner_options options;
    options.batch = config_.batch;
    options.limits = config_.planner;
    options.plan = config_.plan;
    options.deterministic = config_.deterministic;
    options.readers = config_.instances.env_readers;
    options.max_steps = parts_.max_steps;
    options.memory_limit = config_.memory_limit;
    options.keep = config_.keep();
    options.staleness = {parse_source_version(config_.source.version).value(),
                         config_.planner.max_staleness};
    options.checkpoints = config_.trainer.checkpoint_every != 0;
    options.restarts = config_.recovery.wait_s > 0;
    options.journals = config_.recovery.journal;
    add("planner", role::planner, "planner",
        system_.spawn<planner, caf::detached>(parts_.context, std::move(options), std::move(log),
                                              supervisor_, parts_.counters));
    planner_ = out_.contacts.back().who;
  }

  status spawn_trainer(const actor_spec &spec) {
    auto what = learner_of(spec.number);
    if (!what)
      return tl::unexpected(std::move(what).error());
    const auto trains =
        system_.spawn<trainer, caf::detached>(parts_.context, options_of_trainer(spec.number),
                                              std::move(*what), supervisor_, parts_.counters);
    const auto feeds =
        system_.spawn<feeder>(parts_.context,
                              feeder_options{.rank = spec.number,
                                             .memory_limit = config_.memory_limit,
                                             .noticed = parts_.noticed,
                                             .told = parts_.told},
                              feeder_peers{planner_, trains, supervisor_}, parts_.counters);
    add("feeder", role::trainer, fmt::format("feeder-{}", spec.number), feeds);
    stage("trainer").actors.push_back(trains);
    stage("trainer").names.push_back(spec.name);
    return {};
  }

  void spawn_packer(const actor_spec &spec) {
    add("packer", role::packer, spec.name,
        system_.spawn<packer>(parts_.context, packer_options{spec.name, config_.memory_limit},
                              supervisor_, parts_.counters));
  }

  void spawn_scorer(const actor_spec &spec) {
    add("scorer", role::scorer, spec.name,
        system_.spawn<scorer>(parts_.context, spec.name, parts_.config,
                              scorer_peers{planner_, supervisor_}, parts_.counters));
  }

  status spawn_assembler(const actor_spec &spec) {
    group_deadlines deadlines{{}, config_.env_default.deadline_s};
    for (const auto &[name, env] : config_.envs)
      deadlines.by_env.emplace(name, env.deadline_s);
    const assembler_options options{spec.name, config_.instances.env_readers, config_.plan.seq_len,
                                    std::move(deadlines), parts_.config};
    const assembler_peers peers{{}, planner_, supervisor_};
    if (!config_.recovery.journal) {
      add("assembler", role::assembler, spec.name,
          system_.spawn<assembler>(parts_.context, options, peers, parts_.counters));
      return {};
    }
    auto own = journal::open({.folder = parts_.state / "journal" / spec.name,
                              .run = config_.id,
                              .assembler = spec.name,
                              .sync = config_.recovery.sync});
    if (!own)
      return tl::unexpected(std::move(own).error());
    add("assembler", role::assembler, spec.name,
        system_.spawn<assembler, caf::detached>(parts_.context, options, peers, parts_.counters,
                                                std::move(*own)));
    return {};
  }

  status spawn_reader(const actor_spec &spec) {
    auto source = open_source();
    if (!source)
      return tl::unexpected(std::move(source).error());
    env_reader_options options;
    options.index = spec.number;
    options.count = config_.instances.env_readers;
    options.memory_limit = config_.memory_limit;
    options.vocab_size = config_.vocab_size;
    options.pace = config_.source.pace;
    options.sizes.other = config_.env_default.group_size;
    const auto demands_of = [](const env_config &env) {
      return env_demands{.frozen = env.demands_frozen(), .hints = env.demands_hints()};
    };
    options.demands.other = demands_of(config_.env_default);
    for (const auto &[name, env] : config_.envs) {
      options.sizes.by_env.emplace(name, env.group_size);
      options.demands.by_env.emplace(name, demands_of(env));
    }
    add("env-reader", role::env_reader, spec.name,
        system_.spawn<env_reader>(parts_.context, std::move(options), std::move(*source),
                                  env_reader_peers{{}, planner_, supervisor_}, parts_.counters,
                                  parts_.refused));
    return {};
  }

  /// The stages in the order of the data.
  pipeline take() && {
    static constexpr std::array order{"env-reader", "assembler", "scorer", "planner",
                                      "packer",     "feeder",    "trainer"};
    std::ranges::sort(out_.stages, {}, [](const actor_stage &one) {
      return std::ranges::find(order, one.name) - order.begin();
    });
    return std::move(out_);
  }

private:
  result<std::unique_ptr<record_source>> open_source() const {
    if (const auto &live = config_.source; live.is_live())
      return bigram_env::make({.run = config_.id,
                               .seed = live.seed,
                               .vocab_size = config_.vocab_size,
                               .group_size = config_.env(bigram_env_name).group_size,
                               .temperature = config_.env(bigram_env_name).temperature,
                               .record = live.record},
                              parts_.board, parts_.live, parts_.counters->memory);
    auto file = recording_reader::open(parts_.recording);
    if (!file)
      return tl::unexpected(std::move(file).error());
    return std::make_unique<recording_source>(std::move(*file));
  }

  result<std::unique_ptr<learner>> learner_of(std::uint32_t rank) const {
    if (config_.trainer.kind == trainer_kind::external)
      return make_external_learner(parts_.desks->of(rank), parts_.dump);
    auto what = make_policy(config_.trainer, {.rank = rank,
                                              .ranks = config_.plan.ranks,
                                              .vocab_size = config_.vocab_size,
                                              .board = parts_.board});
    if (!what)
      return tl::unexpected(std::move(what).error());
    return std::make_unique<policy_learner>(options_of_learner(rank), std::move(*what),
                                            parts_.counters);
  }

  trainer_options options_of_trainer(std::uint32_t rank) const {
    return {.rank = rank,
            .join = parts_.join(rank),
            .checkpoints = {.folder = parts_.state / "checkpoints",
                            .run = config_.id,
                            .policy = config_.trainer.checkpoint_name(),
                            .rank = rank,
                            .ranks = config_.plan.ranks,
                            .sync = config_.recovery.sync ? file_sync::on : file_sync::off},
            .checkpoint_every = config_.trainer.checkpoint_every,
            .restarts = config_.recovery.wait_s > 0,
            .breaker = parts_.breaker};
  }

  policy_learner_options options_of_learner(std::uint32_t rank) const {
    auto metrics = config_.trainer.metrics;
    if (metrics.empty() && !config_.state.empty())
      metrics = parts_.state / "metrics.jsonl";
    return {.run = config_.id,
            .rank = rank,
            .loss = config_.trainer.loss,
            .metrics = std::move(metrics),
            .exports = parts_.exports,
            .dump = parts_.dump,
            .sync = config_.recovery.sync ? file_sync::on : file_sync::off};
  }

  actor_stage &stage(std::string_view name) {
    const auto found = std::ranges::find(out_.stages, name, &actor_stage::name);
    if (found != out_.stages.end())
      return *found;
    return out_.stages.emplace_back(actor_stage{std::string(name), {}, {}});
  }

  void add(std::string_view where, role what, std::string name, caf::actor actor) {
    stage(where).actors.push_back(actor);
    stage(where).names.push_back(name);
    out_.contacts.push_back(
        {what, peer({std::move(name), parts_.context.incarnation}, std::move(actor))});
  }

  caf::actor_system &system_;
  peer planner_;
  const peer supervisor_;
  const pipeline_parts &parts_;
  const run_config &config_;
  pipeline out_;
};

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

} // namespace

std::vector<actor_spec> all_stages(const run_config &config) {
  std::vector<actor_spec> out{{role::planner, "planner", 0}};
  const auto add = [&](role what, std::uint32_t count) {
    for (std::uint32_t i = 0; i < count; ++i)
      out.push_back({what, fmt::format("{}-{}", to_string(what), i), i});
  };
  add(role::trainer, config.plan.ranks);
  add(role::packer, config.instances.packers);
  add(role::scorer, config.instances.scorers);
  add(role::assembler, config.instances.assemblers);
  add(role::env_reader, config.instances.env_readers);
  return out;
}

result<pipeline> start_actors(caf::actor_system &system, std::span<const actor_spec> specs,
                              peer planner, const peer &supervisor, pipeline_parts &parts) {
  spawner out(system, std::move(planner), supervisor, parts);
  // The planner first: the others are told of it when they are made.
  for (const auto &spec : specs)
    if (spec.what == role::planner)
      out.spawn_planner(std::move(parts.log));
  for (const auto &spec : specs)
    switch (spec.what) {
    case role::trainer:
      MILLRACE_TRY(out.spawn_trainer(spec));
      break;
    case role::packer:
      out.spawn_packer(spec);
      break;
    case role::scorer:
      out.spawn_scorer(spec);
      break;
    case role::assembler:
      MILLRACE_TRY(out.spawn_assembler(spec));
      break;
    case role::env_reader:
      MILLRACE_TRY(out.spawn_reader(spec));
      break;
    case role::planner:
    case role::directory:
    case role::host:
      break;
    }
  return std::move(out).take();
}

bool works_with(role who, role whom) noexcept {
  switch (who) {
  case role::env_reader:
    return whom == role::assembler;
  case role::assembler:
    return whom == role::scorer || whom == role::env_reader;
  case role::planner:
    return whom == role::env_reader || whom == role::assembler || whom == role::scorer ||
           whom == role::packer || whom == role::trainer;
  default:
    return false;
  }
}

bool hears_of_loss(role who, role whom) noexcept {
  return works_with(who, whom) || (who == role::trainer && whom == role::packer) ||
         (who == role::packer && whom == role::trainer) ||
         (who == role::scorer && whom == role::assembler);
}

void introduce(std::span<const contact> contacts) {
  for (const auto &one : contacts)
    for (const auto &other : contacts)
      if (works_with(one.what, other.what))
        tell(one.who, peer_up{other.what, other.who});
}

std::vector<std::string> shut_down(std::span<const actor_stage> stages, caf::scoped_actor &self,
                                   std::chrono::steady_clock::time_point deadline) {
  std::vector<std::string> alive;
  for (const auto &one : stages) {
    for (const auto &actor : one.actors)
      caf::anon_send_exit(actor, caf::exit_reason::user_shutdown);
    for (std::size_t i = 0; i < one.actors.size(); ++i)
      if (!wait_for_end(self, one.actors[i], deadline))
        alive.push_back(one.names[i]);
  }
  return alive;
}

} // namespace millrace
