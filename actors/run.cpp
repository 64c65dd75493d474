// SPDX-License-Identifier: Apache-2.0
#include "actors/run.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <ostream>
#include <thread>
#include <utility>

#include "actors/pipeline.hpp"
#include "actors/progress.hpp"
#include "actors/state_folder.hpp"
#include "runtime/collective/gloo.hpp"
#include "runtime/log.hpp"
#include "runtime/signals.hpp"
#include "schema/synth.hpp"

namespace millrace {

namespace {

using clock = std::chrono::steady_clock;

/// How long the ranks wait for each other, and the end of a run for its actors.
constexpr std::chrono::seconds collective_deadline{60};
constexpr std::chrono::seconds shutdown_deadline{10};
/// How long after a signal a run may go on with the steps that are packed.
constexpr std::chrono::seconds stop_deadline{30};

/// What the supervisor hears while a run goes on.
struct run_state {
  std::vector<step_report> steps;
  std::shared_ptr<const ledger> entries;
  digest128 grid_hash;
  std::vector<source_report> sources;
  std::optional<error> failure;
  std::string interrupted;
  bool finished = false;
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
  const auto path = state.path() / (source.preset + ".mrec");
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
void listen(caf::scoped_actor &self, run_state &state, progress &shown) {
  self->receive(
      [&](const step_done &in) {
        shown.line(line_of(in.report));
        state.steps.push_back(in.report);
      },
      [&](const source_report &in) { state.sources.push_back(in); },
      [&](const run_finished &in) {
        state.entries = in.entries;
        state.grid_hash = in.grid_hash;
        state.finished = true;
      },
      [&](const run_failed &in) {
        if (!state.failure)
          state.failure = error{in.what.code, fmt::format("{}: {}", in.who, in.what.message)};
      },
      [&](const caf::down_msg &in) {
        if (!state.failure)
          state.failure = error{errc::peer_lost, "an actor ended: " + caf::to_string(in.reason)};
      },
      caf::after(std::chrono::milliseconds(50)) >> [] {});
}

/// Until the planner has finished, something fails, or a stop takes too long.
void supervise(caf::scoped_actor &self, const pipeline &actors, signal_guard &signals,
               run_state &state, progress &shown) {
  for (const auto &stage : actors.stages)
    for (const auto &actor : stage.actors)
      self->monitor(actor);
  auto give_up_at = clock::time_point::max();
  while (!state.finished && !state.failure) {
    listen(self, state, shown);
    shown.tick();
    if (signals.take() != 0) {
      if (!state.interrupted.empty())
        give_up_at = clock::now();
      state.interrupted = "stopped by a signal: what was not trained is held";
      give_up_at = std::min(give_up_at, clock::now() + stop_deadline);
      self->send(actors.planner, stop_run{"a signal came"});
    }
    if (clock::now() >= give_up_at)
      state.failure =
          error{errc::timed_out, "stopped by a signal before the packed steps were trained"};
  }
  shown.clear();
}

/// Actors that hang would keep the process for ever: say who they are, and go.
void end_actors(caf::scoped_actor &self, const pipeline &actors) {
  const auto alive = shut_down(actors.stages, self, clock::now() + shutdown_deadline);
  if (alive.empty())
    return;
  std::string names;
  for (const auto &name : alive)
    names += (names.empty() ? "" : ", ") + name;
  log::error("these actors did not end within {} s: {}", shutdown_deadline.count(), names);
  std::_Exit(1);
}

/// What the source holds, counted without the pipeline. The closing index says it, if all of the
/// file could be read.
result<recording_counts> count_source(const std::filesystem::path &recording,
                                      const run_state &state) {
  for (const auto &source : state.sources)
    if (source.counts && source.damage.empty())
      return *source.counts;
  return count_recording(recording);
}

/// Groups that had not reached the planner when a run was stopped early are held.
void hold_the_rest(run_summary &summary) {
  const auto expected = summary.expected.episodes + summary.expected.unfinished + summary.unparsed;
  if (expected > summary.entries.total())
    summary.entries[episode_state::held] += expected - summary.entries.total();
}

std::vector<rank_join> gloo_joins(std::uint32_t ranks) {
  const auto store = make_gloo_store();
  std::vector<rank_join> out;
  for (std::uint32_t rank = 0; rank < ranks; ++rank)
    out.push_back([options = gloo_options{.rank = static_cast<int>(rank),
                                          .size = static_cast<int>(ranks),
                                          .deadline = collective_deadline},
                   store] { return join_gloo(options, store); });
  return out;
}

} // namespace

result<run_summary> run_pipeline(const run_config &config, const run_options &options,
                                 std::ostream &out) {
  signal_guard signals;
  auto state = state_folder::open(config.state);
  if (!state)
    return tl::unexpected(std::move(state).error());
  const auto recording = recording_of(config.source, *state, out);
  if (!recording)
    return tl::unexpected(recording.error());

  pipeline_parts parts;
  parts.config = std::make_shared<run_config>(config);
  parts.recording = *recording;
  parts.max_steps = options.max_steps;
  parts.dump = options.dump;
  parts.counters = std::make_shared<run_counters>();
  parts.refused = std::make_shared<quarantine>(state->path() / "quarantine.jsonl");
  parts.join = gloo_joins(config.plan.ranks);
  if (options.schedule_seed != 0)
    parts.context.fuzzer = std::make_shared<schedule_fuzzer>(options.schedule_seed);

  caf::actor_system_config settings;
  settings.set("logger.verbosity", caf::atom("quiet"));
  if (config.workers != 0)
    settings.set("scheduler.max-threads", static_cast<std::size_t>(config.workers));
  caf::actor_system system(settings);
  caf::scoped_actor self(system);
  run_state heard;
  const auto begun = clock::now();
  auto actors = start_pipeline(system, caf::actor_cast<caf::actor>(self), parts);
  if (!actors)
    return tl::unexpected(std::move(actors).error());
  progress shown(out, ::isatty(STDOUT_FILENO) != 0, *parts.counters);
  supervise(self, *actors, signals, heard, shown);
  const std::chrono::duration<double> took = clock::now() - begun;
  end_actors(self, *actors);
  if (heard.failure)
    return tl::unexpected(*heard.failure);

  run_summary summary;
  summary.id = config.id;
  summary.source = recording->string();
  summary.ranks = config.plan.ranks;
  summary.seconds = took.count();
  auto expected = count_source(*recording, heard);
  if (!expected)
    return tl::unexpected(std::move(expected).error());
  summary.expected = std::move(*expected);
  summary.entries = *heard.entries;
  summary.unparsed = parts.counters->unparsed;
  summary.duplicates = parts.counters->duplicates;
  summary.late = parts.counters->late;
  summary.unnamed_records = parts.counters->unnamed_records;
  summary.unnamed_bytes = parts.counters->unnamed_bytes;
  if (!heard.sources.empty()) {
    summary.damage = heard.sources.front().damage;
    summary.torn = heard.sources.front().torn;
  }
  if (heard.sources.size() < config.instances.env_readers)
    hold_the_rest(summary);
  summary.damage_allowed = options.allow_damage;
  summary.steps = std::move(heard.steps);
  summary.grid_hash = heard.grid_hash;
  summary.counters = parts.counters;
  summary.turns = parts.context.turns->report();
  summary.peak_rss_bytes = peak_rss();
  summary.interrupted = heard.interrupted;
  if (parts.refused->count() > 0) {
    summary.quarantine = parts.refused->path().string();
    state->keep();
  }
  return summary;
}

} // namespace millrace
