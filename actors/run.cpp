// SPDX-License-Identifier: Apache-2.0
#include "actors/run.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <map>
#include <ostream>
#include <thread>
#include <utility>

#include "actors/pipeline.hpp"
#include "actors/progress.hpp"
#include "actors/state_folder.hpp"
#include "runtime/collective/gloo.hpp"
#include "runtime/log.hpp"
#include "runtime/machine_memory.hpp"
#include "runtime/signals.hpp"
#include "schema/synth.hpp"

namespace millrace {

namespace {

using clock = std::chrono::steady_clock;

/// How long the ranks wait for each other; and, longer, the end of a run for its actors, since a
/// rank may have to wait that long before it can end.
constexpr std::chrono::seconds collective_deadline{30};
constexpr std::chrono::seconds shutdown_deadline{40};
/// How long after a signal a run may go on with the steps that are packed.
constexpr std::chrono::seconds stop_deadline{30};

/// What the supervisor hears while a run goes on.
struct run_state {
  std::vector<step_report> steps;
  std::shared_ptr<const ledger> entries;
  digest128 grid_hash;
  std::vector<source_report> sources;
  bool all_received = false;
  std::optional<error> failure;
  std::string interrupted;
  bool finished = false;
  std::map<caf::actor_addr, std::string> names; ///< of all actors

  /// The first failure stands, but for one that only says that somebody is gone: the cause replaces
  /// it.
  void fail_with(error why) {
    if (!failure || (failure->code == errc::peer_lost && why.code != errc::peer_lost))
      failure = std::move(why);
  }
};

std::uint64_t peak_rss() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
}

/// The recording to read: the one that the config names, or a preset made for this run.
result<std::filesystem::path> recording_of(const source_config &source, const state_folder &state,
                                           std::ostream &out) {
  if (!source.path.empty())
    return source.path;
  auto path = state.path() / (source.preset + ".mrec");
  const auto made =
      synthesize({.preset = source.preset, .scale = source.scale, .seed = source.seed}, path);
  if (!made)
    return tl::unexpected(made.error());
  out << fmt::format("made {}: preset {}, scale {}, seed {}: {} episodes, {} tokens\n",
                     path.string(), source.preset, source.scale, source.seed, made->episodes,
                     made->tokens);
  return path;
}

/// One turn of the supervisor: take a message, or look around.
void listen(caf::scoped_actor &self, run_state &state, progress &shown,
            std::chrono::milliseconds patience) {
  self->receive(
      [&](const step_done &in) {
        shown.line(line_of(in.report));
        state.steps.push_back(in.report);
      },
      [&](const source_report &in) { state.sources.push_back(in); },
      [](const hunger &) {}, [](const drained &) {},
      [&](const run_finished &in) {
        state.entries = in.entries;
        state.grid_hash = in.grid_hash;
        state.all_received = in.all_received;
        state.finished = true;
      },
      [&](const run_failed &in) {
        state.fail_with({in.what.code, fmt::format("{}: {}", in.who, in.what.message)});
      },
      [&](const caf::down_msg &in) {
        state.fail_with({errc::peer_lost, fmt::format("{} ended: {}", state.names[in.source],
                                                      caf::to_string(in.reason))});
      },
      caf::after(patience) >> [] {});
}

/// Until the planner has finished, something fails, or a stop takes too long.
void supervise(caf::scoped_actor &self, const pipeline &actors, signal_guard &signals,
               run_state &state, progress &shown) {
  for (const auto &stage : actors.stages)
    for (std::size_t i = 0; i < stage.actors.size(); ++i) {
      state.names[stage.actors[i].address()] = stage.names[i];
      self->monitor(stage.actors[i]);
    }
  auto give_up_at = clock::time_point::max();
  while (!state.finished && !state.failure) {
    listen(self, state, shown, std::chrono::milliseconds(50));
    shown.tick();
    if (signals.take() != 0) {
      if (!state.interrupted.empty())
        give_up_at = clock::now();
      state.interrupted = "stopped by a signal: what was not trained is held";
      give_up_at = std::min(give_up_at, clock::now() + stop_deadline);
      for (const auto &one : actors.contacts)
        if (one.what == role::planner)
          tell(one.who, stop_run{"a signal came"});
    }
    if (clock::now() >= give_up_at)
      state.failure =
          error{errc::timed_out, "stopped by a signal before the packed steps were trained"};
  }
  // The echoes of a failure may have come before its cause.
  for (int i = 0; state.failure && state.failure->code == errc::peer_lost && i < 20; ++i)
    listen(self, state, shown, std::chrono::milliseconds(10));
  shown.clear();
}

/// Actors that hang would keep the process for ever: say why it ends and who they are, and go.
void end_actors(caf::scoped_actor &self, const pipeline &actors, const run_state &state,
                std::ostream &out) {
  const auto alive = shut_down(actors.stages, self, clock::now() + shutdown_deadline);
  if (alive.empty())
    return;
  std::string names;
  for (const auto &name : alive)
    names += (names.empty() ? "" : ", ") + name;
  if (state.failure)
    log::error("{}", state.failure->message);
  log::error("these actors did not end within {} s: {}", shutdown_deadline.count(), names);
  out.flush();
  std::_Exit(1);
}

/// What the source holds, counted without the pipeline, and what is wrong with it.
struct source_truth {
  recording_counts counts;
  std::vector<recording_damage> damage;
  bool torn = false;
};

/// The closing index says it, if a reader has come to it without damage; else the recording is
/// counted.
result<source_truth> look_at_source(const std::filesystem::path &recording,
                                    const run_state &state) {
  for (const auto &source : state.sources)
    if (source.counts && source.damage.empty())
      return source_truth{*source.counts, {}, source.torn};
  auto file = recording_reader::open(recording);
  if (!file)
    return tl::unexpected(std::move(file).error());
  auto counts = count_recording(*file);
  return source_truth{std::move(counts), file->damage(), file->torn().has_value()};
}

/// Groups that had not reached the planner when a run was stopped early are held.
void hold_the_rest(run_summary &summary) {
  const auto all = summary.source_episodes();
  if (all > summary.entries.total())
    summary.entries[episode_state::held] += all - summary.entries.total();
}

/// Two runs in one folder would look like one.
status check_dump_folder(const std::filesystem::path &dump) {
  std::error_code ignored; // a folder that is not there is fine; dump() reports what cannot be made
  for (const auto &entry : std::filesystem::directory_iterator(dump, ignored))
    if (entry.path().filename().string().starts_with("step-"))
      return fail(errc::bad_argument, "{} holds the steps of another run: name a new folder",
                  dump.string());
  return {};
}

std::function<rank_join(std::uint32_t)> gloo_joins(std::uint32_t ranks) {
  return [ranks, store = make_gloo_store()](std::uint32_t rank) -> rank_join {
    return [options = gloo_options{.rank = static_cast<int>(rank),
                                   .size = static_cast<int>(ranks),
                                   .deadline = collective_deadline},
            store] { return join_gloo(options, store); };
  };
}

/// Runs the actors from start to end. Errors: the failure that ended them.
status run_actors(const pipeline_parts &parts, std::ostream &out, run_state &heard) {
  signal_guard signals; // before the threads of the actor system
  caf::actor_system_config settings;
  settings.set("logger.verbosity", caf::atom("quiet"));
  // CAF's own default is four threads, also on two cores.
  const std::size_t cores = std::max(1U, std::thread::hardware_concurrency());
  settings.set("scheduler.max-threads",
               parts.config->workers == 0 ? cores : std::size_t{parts.config->workers});
  caf::actor_system system(settings);
  caf::scoped_actor self(system);
  const auto specs = all_stages(*parts.config);
  auto actors = start_actors(system, specs, {}, caf::actor_cast<caf::actor>(self), parts);
  if (!actors)
    return tl::unexpected(std::move(actors).error());
  introduce(actors->contacts);
  progress shown(out, ::isatty(STDOUT_FILENO) != 0, *parts.counters);
  supervise(self, *actors, signals, heard, shown);
  end_actors(self, *actors, heard, out);
  if (heard.failure)
    return tl::unexpected(*heard.failure);
  return {};
}

run_summary summarise(const pipeline_parts &parts, const run_state &heard, source_truth truth) {
  const auto &counters = *parts.counters;
  run_summary summary;
  summary.id = parts.config->id;
  summary.source = parts.recording.string();
  summary.ranks = parts.config->plan.ranks;
  summary.expected = std::move(truth.counts);
  summary.damage = std::move(truth.damage);
  summary.torn = truth.torn;
  summary.entries = *heard.entries;
  summary.entries[episode_state::rejected] += counters.surplus;
  summary.unparsed = counters.unparsed;
  summary.duplicates = counters.duplicates;
  summary.late = counters.late;
  summary.unnamed_records = counters.unnamed_records;
  summary.unnamed_bytes = counters.unnamed_bytes;
  if (!heard.all_received)
    hold_the_rest(summary);
  summary.steps = heard.steps;
  summary.grid_hash = heard.grid_hash;
  summary.counters = parts.counters;
  summary.turns = parts.context.turns->report();
  summary.peak_rss_bytes = peak_rss();
  summary.interrupted = heard.interrupted;
  if (parts.refused->count() > 0)
    summary.quarantine = parts.refused->path().string();
  return summary;
}

} // namespace

result<run_summary> run_pipeline(const run_config &config, const run_options &options,
                                 std::ostream &out) {
  if (!options.dump.empty())
    MILLRACE_TRY(check_dump_folder(options.dump));
  auto state = state_folder::open(config.state);
  if (!state)
    return tl::unexpected(std::move(state).error());
  const auto recording = recording_of(config.source, *state, out);
  if (!recording)
    return tl::unexpected(recording.error());

  pipeline_parts parts;
  auto settings = std::make_shared<run_config>(config);
  settings->memory_limit = effective_memory_limit(config.memory_limit);
  parts.config = std::move(settings);
  parts.recording = *recording;
  parts.max_steps = options.max_steps;
  parts.dump = options.dump;
  parts.counters = std::make_shared<run_counters>();
  parts.refused = std::make_shared<quarantine>(state->path() / "quarantine.jsonl");
  parts.join = gloo_joins(config.plan.ranks);
  if (options.schedule_seed != 0)
    parts.context.fuzzer = std::make_shared<schedule_fuzzer>(options.schedule_seed);

  run_state heard;
  const auto begun = clock::now();
  const auto ran = run_actors(parts, out, heard);
  const std::chrono::duration<double> took = clock::now() - begun;
  if (parts.refused->count() > 0)
    state->keep();
  if (!ran)
    return tl::unexpected(ran.error());
  auto truth = look_at_source(*recording, heard);
  if (!truth)
    return tl::unexpected(std::move(truth).error());
  auto summary = summarise(parts, heard, std::move(*truth));
  summary.seconds = took.count();
  summary.damage_allowed = options.allow_damage;
  return summary;
}

} // namespace millrace
