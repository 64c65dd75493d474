// SPDX-License-Identifier: Apache-2.0
#include "actors/run.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <ostream>
#include <thread>
#include <utility>

#include "actors/node/directory.hpp"
#include "actors/node/host_codec.hpp"
#include "actors/node/process.hpp"
#include "actors/node/progress_watch.hpp"
#include "actors/node/run_report.hpp"
#include "actors/progress.hpp"
#include "actors/state_folder.hpp"
#include "actors/supervisor.hpp"
#include "runtime/collective/gloo.hpp"
#include "runtime/file.hpp"
#include "runtime/log.hpp"
#include "runtime/machine_memory.hpp"
#include "runtime/output_file.hpp"
#include "runtime/signals.hpp"
#include "schema/synth.hpp"
#include "transport/client.hpp"
#include "transport/curve.hpp"
#include "transport/endpoint.hpp"

namespace millrace {

namespace {

using clock = std::chrono::steady_clock;

/// How long the end of a run may take, and the end of this process's actors.
constexpr std::chrono::seconds shutdown_deadline{40};
/// The same for a process that is to be started again: a rank may hang in a collective until its
/// process is gone, and others wait for it.
constexpr std::chrono::seconds restart_deadline{1};
/// Exit code of a process that is to be started again (launch/terminal.hpp).
constexpr int exit_to_restart = 75;
/// How long trainers in Python may take to hear of the end. They ask once a second.
constexpr std::chrono::seconds last_word_deadline{2};
/// How long what is queued for other processes may take at the end.
constexpr std::chrono::seconds flush_deadline{5};

/// A source's name, for who does not read it.
std::filesystem::path name_of(const source_config &source) {
  if (source.is_live())
    return fmt::format("environment {}", bigram_env_name);
  return source.path.empty() ? std::filesystem::path("preset " + source.preset) : source.path;
}

/// The recording to read: the one that the config names, or a preset made for this run.
result<std::filesystem::path> recording_of(const source_config &source, const state_folder &state,
                                           std::ostream &out) {
  if (!source.path.empty() || source.is_live())
    return name_of(source);
  auto path = state.path() / (source.preset + ".mrec");
  // A run that goes on reads what it began with; another preset, scale or seed is refused.
  if (std::filesystem::exists(path))
    return path;
  const auto made =
      synthesize({.preset = source.preset, .scale = source.scale, .seed = source.seed}, path);
  if (!made)
    return tl::unexpected(made.error());
  out << fmt::format("made {}: preset {}, scale {}, seed {}: {} episodes, {} tokens\n",
                     path.string(), source.preset, source.scale, source.seed, made->episodes,
                     made->tokens);
  return path;
}

/// After a failure trainers wait for ranks that do not come any more: that ends first. Actors that
/// hang would keep the process for ever: say why it ends and who they are, and go.
void end_actors(caf::scoped_actor &self, const pipeline &actors, const pipeline_parts &parts,
                const run_state &state, std::ostream &out) {
  if (state.failure)
    parts.breaker->break_all(state.failure->message);
  parts.desks->end(state.failure);
  const auto deadline = state.wants_restart() ? restart_deadline : shutdown_deadline;
  const auto alive = shut_down(actors.stages, self, clock::now() + deadline);
  if (alive.empty())
    return;
  std::string names;
  for (const auto &name : alive)
    names += (names.empty() ? "" : ", ") + name;
  if (state.failure)
    log::error("{}", state.failure->message);
  log::error("these actors did not end within {} s: {}", deadline.count(), names);
  out.flush();
  std::_Exit(state.wants_restart() ? exit_to_restart : 1);
}

/// What the readers of this process found, with a count of the recording that the pipeline did not
/// make: what a live environment has made, or a recording's closing index, if it was reached
/// without damage; else all of it is counted.
status complete_sources(std::vector<source_report> &sources, const live_tally *live,
                        const std::filesystem::path &recording) {
  if (live != nullptr) {
    sources.push_back({0, std::make_shared<recording_counts>(live->counts()), {}, false});
    return {};
  }
  for (const auto &source : sources)
    if (source.counts && source.damage.empty())
      return {};
  auto file = recording_reader::open(recording);
  if (!file)
    return tl::unexpected(std::move(file).error());
  auto counts = std::make_shared<recording_counts>(count_recording(*file));
  sources.insert(sources.begin(), {0, std::move(counts), file->damage(), file->torn().has_value()});
  return {};
}

/// What the state folder is of, as its log says it.
run_identity identity_of(const run_config &config, const process_options &process) {
  const auto &source = config.source;
  return {config.id,
          source.is_live() ? fmt::format("environment {}, seed {}", bigram_env_name, source.seed)
          : source.path.empty() ? fmt::format("preset {}, scale {}, seed {}", source.preset,
                                              source.scale, source.seed)
                                : source.path.string(),
          process.program,
          process.config_digest,
          config.plan.ranks,
          process.settings};
}

std::string resumed_line(const run_history &log, const std::filesystem::path &state) {
  return fmt::format("start {} in {}: {} steps are committed, {} trained, {} durable; {} groups "
                     "have ended\n",
                     log.opened()->epoch, state.string(), log.committed(), log.trained(),
                     log.durable(), log.groups().size());
}

/// Groups that had not reached the planner when a run was stopped early are held.
void hold_the_rest(run_summary &summary) {
  const auto all = summary.source_episodes();
  const auto known = summary.entries.total() + summary.too_late;
  if (all > known)
    summary.entries[episode_state::held] += all - known;
}

/// Two runs in one folder would look like one.
status check_step_folder(const std::filesystem::path &folder) {
  std::error_code ignored; // a folder that is not there is fine; who writes reports the rest
  for (const auto &entry : std::filesystem::directory_iterator(folder, ignored))
    if (entry.path().filename().string().starts_with("step-"))
      return fail(errc::bad_argument, "{} holds the steps of another run: name a new folder",
                  folder.string());
  return {};
}

/// How the trainers of this process join each other, and those of other processes: over what the
/// planner passes on.
class rendezvous {
public:
  rendezvous(const run_config &config, const std::weak_ptr<post> &office, std::string address)
      : options_{.rank = 0,
                 .size = static_cast<int>(config.plan.ranks),
                 .address = std::move(address),
                 .deadline = std::chrono::milliseconds(
                     static_cast<std::int64_t>(config.trainer.timeout_s * 1000))},
        relay_(std::make_shared<gloo_relay>([office](std::string key, std::string value) {
          if (const auto here = office.lock())
            tell(here->find({"planner", 0}), rank_notice{std::move(key), std::move(value)});
        })) {}

  rank_join join(std::uint32_t rank) const {
    auto mine = options_;
    mine.rank = static_cast<int>(rank);
    return [mine, relay = relay_](std::uint64_t generation) mutable {
      mine.prefix = fmt::format("generation {}", generation);
      return join_gloo(mine, relay->store());
    };
  }
  /// Nobody comes any more.
  std::function<void(std::string_view)> end() const {
    return [relay = relay_](std::string_view reason) { relay->abort(reason); };
  }
  std::function<void(const rank_notice &)> ear() const {
    return [relay = relay_](const rank_notice &in) { relay->deliver(in.key, in.value); };
  }
  std::function<std::vector<rank_notice>()> told() const {
    return [relay = relay_] {
      std::vector<rank_notice> out;
      for (auto &[key, value] : relay->published())
        out.push_back({std::move(key), std::move(value)});
      return out;
    };
  }

private:
  const gloo_options options_;
  std::shared_ptr<gloo_relay> relay_;
};

/// The host of an endpoint: ranks listen where their process is reached.
std::string host_of(const std::string &reached_at) {
  const auto parsed = endpoint::parse(reached_at);
  return parsed && !parsed->is_ipc() ? parsed->host : "127.0.0.1";
}

bool holds(std::span<const actor_spec> actors, role what) {
  return std::ranges::any_of(actors, [what](const auto &one) { return one.what == what; });
}

/// Everything of one process that is there before its actors.
struct process_parts {
  std::shared_ptr<const run_config> config;
  const process_options &process;
  const run_options &options;
  std::filesystem::path state;
  pipeline_parts stages;
  bool plans = false;

  bool reads() const { return holds(process.actors, role::env_reader); }
  /// Only actors whose work another can take over.
  bool can_drain() const {
    return !process.directory && std::ranges::all_of(process.actors, [](const auto &one) {
      return one.what == role::scorer || one.what == role::assembler || one.what == role::packer;
    });
  }
};

/// For trainers in Python. Known before the first question can come.
std::shared_ptr<feed_desks> desks_of(const run_config &config, const process_options &process,
                                     const std::shared_ptr<wait_board> &waits) {
  std::vector<std::uint32_t> ranks;
  if (config.trainer.kind == trainer_kind::external)
    for (const auto &one : process.actors)
      if (one.what == role::trainer)
        ranks.push_back(one.number);
  return std::make_shared<feed_desks>(std::move(ranks),
                                      feed_desk_options{.rank = 0,
                                                        .peers = config.trainer.peers,
                                                        .patience = config.link.limits().timeout,
                                                        .restarts = config.recovery.wait_s > 0},
                                      waits);
}

result<process_parts> prepare(const run_config &config, const process_options &process,
                              const run_options &options, const state_folder &state,
                              std::ostream &out) {
  auto settings = std::make_shared<run_config>(config);
  settings->memory_limit = effective_memory_limit(config.memory_limit);
  process_parts parts{settings, process, options, state.path(), {}, false};
  parts.plans = holds(process.actors, role::planner);
  auto &stages = parts.stages;
  if (parts.plans) {
    // A folder that is made up for this run is gone with it: nothing in it needs to be safe.
    auto log = run_log::open(state.path(), identity_of(config, process), config.keep(),
                             config.recovery.sync && !config.state.empty());
    if (!log)
      return tl::unexpected(std::move(log).error());
    if ((*log)->resumed())
      out << resumed_line((*log)->history(), state.path()) << std::flush;
    stages.log = std::move(*log);
  }
  stages.config = settings;
  stages.state = state.path();
  stages.recording = name_of(config.source);
  if (parts.reads()) {
    const auto recording = recording_of(config.source, state, out);
    if (!recording)
      return tl::unexpected(recording.error());
    stages.recording = *recording;
  }
  stages.max_steps = options.max_steps;
  stages.dump = options.dump;
  stages.exports = options.exports;
  if (config.trainer.kind == trainer_kind::external && !options.exports.empty())
    return fail(errc::bad_argument, "--export writes what a policy of this program says of tokens; "
                                    "trainer.kind is external");
  if (config.source.is_live()) {
    if (parts.reads() != holds(process.actors, role::trainer))
      return fail(errc::bad_argument,
                  "source.env = \"{}\" samples in the process of the trainer: "
                  "start all roles in one, with `millrace run`",
                  bigram_env_name);
    stages.board = std::make_shared<bigram_board>();
    stages.live = std::make_shared<live_tally>();
  }
  stages.counters = std::make_shared<run_counters>();
  stages.breaker = std::make_shared<collective_breaker>();
  stages.desks = desks_of(config, process, stages.counters->waits);
  stages.refused = std::make_shared<quarantine>(
      state.path() / (process.alone ? std::string("quarantine.jsonl")
                                    : fmt::format("quarantine-{}.jsonl", process.name)));
  stages.context.incarnation = static_cast<std::uint64_t>(
      std::chrono::system_clock::now().time_since_epoch() / std::chrono::nanoseconds(1));
  if (options.schedule_seed != 0)
    stages.context.fuzzer = std::make_shared<schedule_fuzzer>(options.schedule_seed);
  return parts;
}

/// The actors that every process has beside its stages.
struct process_staff {
  caf::actor host;
  caf::actor directory; ///< in one process of a run
};

/// Spawns stages and staff, and makes them known to each other and to the post.
result<process_staff> start(caf::actor_system &system, const caf::actor &supervising,
                            const std::shared_ptr<post> &office, process_entry entry,
                            const std::string &directory_key, process_parts &parts,
                            pipeline &stages) {
  const auto &config = *parts.config;
  const auto &context = parts.stages.context;
  const rendezvous ranks(config, office, host_of(office->endpoint()));
  parts.stages.join = [&](std::uint32_t rank) { return ranks.join(rank); };
  parts.stages.breaker->on_break(ranks.end());
  parts.stages.noticed = ranks.ear();
  parts.stages.told = ranks.told();
  auto started =
      start_actors(system, parts.process.actors,
                   parts.plans ? peer() : office->find({"planner", 0}), supervising, parts.stages);
  if (!started)
    return tl::unexpected(std::move(started).error());
  stages = std::move(*started);
  process_staff staff;
  const auto lease = config.link.limits().timeout;
  if (parts.process.directory)
    staff.directory = system.spawn<directory>(
        context,
        directory_options{.run = config.id, .incarnation = context.incarnation, .lease = lease},
        office);
  staff.host = system.spawn<host>(
      context,
      host_options{
          .entry = std::move(entry),
          .directory_process = std::string(directory_process),
          .directory_endpoint = config.link.directory,
          .directory_key = directory_key,
          .lease = lease,
          .status = status_source{parts.process.program, config.memory_limit, parts.stages.counters,
                                  office},
          .has_directory = parts.process.directory,
          .patience_for_restart =
              std::chrono::milliseconds(static_cast<std::int64_t>(config.recovery.wait_s * 1000)),
          .pinned = [counters = parts.stages.counters](
                        const std::string &name) { return counters->pinned->count(name); }},
      office, stages.contacts, staff.directory, supervising);
  for (const auto &one : stages.contacts)
    office->add_local(one);
  office->add_local({role::host, peer({"host", context.incarnation}, staff.host)});
  if (parts.plans)
    office->add_local({role::host, peer({"supervisor", context.incarnation}, supervising)});
  office->employ({staff.host, staff.directory, supervising});
  introduce(stages.contacts);
  return staff;
}

run_report report_of(const process_parts &parts, const run_state &heard) {
  run_report out;
  out.process = parts.process.name;
  out.counters = parts.stages.counters;
  out.turns = parts.stages.context.turns->report();
  out.peak_rss_bytes = peak_rss();
  out.sources = heard.sources;
  if (parts.stages.refused->count() > 0)
    out.quarantine = parts.stages.refused->path().string();
  return out;
}

/// Ends the links: what is queued goes out first.
void leave(caf::scoped_actor &self, post &office, const process_staff &staff,
           const run_report &report, bool run_is_over) {
  // Who ends from now on need not be known; the planner's process may be gone before it hears it.
  if (run_is_over && staff.directory)
    caf::anon_send_exit(staff.directory, caf::exit_reason::user_shutdown);
  self->request(staff.host, caf::infinite,
                leave_run{{report.process, json::dump(to_json(report))}, run_is_over})
      .receive([](const has_left &) {}, [](const caf::error &) {});
  const auto left = office.close(flush_deadline);
  for (const auto &one : left)
    log::warn("{} messages ({} bytes) to {} were not delivered", one.messages, one.bytes,
              one.process);
  for (const auto &actor : {staff.host, staff.directory})
    if (actor)
      caf::anon_send_exit(actor, caf::exit_reason::user_shutdown);
}

status write_endpoint(const process_options &process, const std::string &reached_at,
                      std::ostream &out) {
  if (!process.endpoint_file.empty())
    MILLRACE_TRY(write_file_atomically(process.endpoint_file, reached_at + "\n"));
  if (process.alone)
    out << "tools attach at " << reached_at << '\n' << std::flush;
  return {};
}

/// Looks after the progress of the run, in the planner's process: says why nothing moves.
std::function<void()> watch(const process_parts &parts, std::string directory_endpoint,
                            std::string directory_key, run_state &heard) {
  if (!parts.plans)
    return [] {};
  const auto &config = *parts.config;
  if (!parts.process.directory)
    directory_endpoint = config.link.directory;
  auto look = std::make_shared<progress_watch>(config.progress, clock::now());
  return [look, &heard, where = std::move(directory_endpoint), key = std::move(directory_key),
          id = config.id, curve_folder = config.link.curve_folder,
          counters = parts.stages.counters] {
    const auto alarm = look->look(clock::now(), counters->steps_trained);
    if (!alarm)
      return;
    std::optional<curve_config> keys;
    if (!curve_folder.empty())
      if (auto loaded = load_keys(curve_folder))
        keys = std::move(*loaded);
    status_answer who;
    const auto parts_of_answer =
        ask(where, key, keys, id, encode(host_parcel{status_question{}}), std::chrono::seconds(2));
    if (parts_of_answer)
      if (auto read = decode_host(*parts_of_answer))
        if (auto *answer = std::get_if<status_answer>(&read->what))
          who = std::move(*answer);
    const auto line = no_progress_line(*alarm, who);
    log::warn("{}", line);
    if (alarm->stop)
      heard.fail_with({errc::timed_out, line});
  };
}

/// Binds. The socket of a run that is alone is for tools: if the state folder's path is too long
/// for one, a port of this machine serves as well.
status open(post &office, hub_options sockets, bool alone) {
  if (const auto where = endpoint::parse(sockets.bind); alone && !where) {
    log::warn("{}", where.error().message);
    sockets.bind = "tcp://127.0.0.1:*";
  }
  return office.open(std::move(sockets));
}

/// From the sockets to the last message. Errors: what kept the actors from starting.
status run_with(caf::actor_system &system, signal_guard &signals,
                const std::shared_ptr<post> &office, process_parts &parts, std::ostream &out,
                run_state &heard) {
  const auto &config = *parts.config;
  caf::scoped_actor self(system);
  auto sockets = hub_options_of(config, parts.process, parts.state, parts.stages.context,
                                parts.stages.counters->memory);
  if (!sockets)
    return tl::unexpected(std::move(sockets).error());
  if (parts.stages.log)
    sockets->self.folder = parts.stages.log->history().opened()->folder.hex();
  auto entry = entry_of(parts.process, *sockets);
  auto directory_key = config.link.directory_key;
  if (directory_key.empty())
    directory_key = entry.key;
  office->seat(parts.stages.desks);
  MILLRACE_TRY(open(*office, std::move(*sockets), parts.process.alone));
  entry.endpoint = office->endpoint();
  const auto feeds =
      feed_endpoints::write(parts.state, parts.stages.desks->ranks(), entry.endpoint, entry.key);
  if (!feeds)
    return tl::unexpected(feeds.error());
  MILLRACE_TRY(write_endpoint(parts.process, entry.endpoint, out));
  pipeline stages;
  const auto staff = start(system, caf::actor_cast<caf::actor>(self), office, std::move(entry),
                           directory_key, parts, stages);
  if (!staff)
    return tl::unexpected(staff.error());
  if (!parts.process.directory) {
    office->learn({.process = std::string(directory_process),
                   .incarnation = 0,
                   .endpoint = config.link.directory,
                   .key = directory_key,
                   .actors = {}});
    office->link_to(std::string(directory_process));
  }
  progress shown(out, ::isatty(STDOUT_FILENO) != 0, *parts.stages.counters);
  supervisor leads(self, signals, shown, heard);
  leads.run({.host = staff->host,
             .stages = &stages,
             .has_planner = parts.plans,
             .failures = parts.plans ? peer() : office->find({"supervisor", 0}),
             .patience = parts.process.alone ? std::chrono::milliseconds(200)
                                             : 2 * config.link.limits().timeout,
             .can_drain = parts.can_drain()},
            watch(parts, office->endpoint(), directory_key, heard));
  end_actors(self, stages, parts.stages, heard, out);
  parts.stages.desks->wait_until_heard(last_word_deadline);
  if (parts.reads() && !heard.failure)
    if (auto counted =
            complete_sources(heard.sources, parts.stages.live.get(), parts.stages.recording);
        !counted)
      heard.fail_with(std::move(counted).error());
  if (parts.plans && !parts.process.alone && !heard.wants_restart())
    if (auto ended = leads.end_others(clock::now() + shutdown_deadline); !ended)
      heard.fail_with(std::move(ended).error());
  leave(self, *office, *staff, report_of(parts, heard), heard.over());
  return {};
}

status run_actors(process_parts &parts, std::ostream &out, run_state &heard) {
  signal_guard signals; // before the threads of the actor system and of the hub
  caf::actor_system_config settings;
  settings.set("logger.verbosity", caf::atom("quiet"));
  // CAF's own default is four threads, also on two cores.
  const std::size_t cores = std::max(1U, std::thread::hardware_concurrency());
  settings.set("scheduler.max-threads",
               parts.config->workers == 0 ? cores : std::size_t{parts.config->workers});
  std::shared_ptr<post> office; // outlives the actors that decode for it
  caf::actor_system system(settings);
  office = std::make_shared<post>(system, parts.stages.context, parts.stages.counters->memory);
  const auto ran = run_with(system, signals, office, parts, out, heard);
  office->close(std::chrono::milliseconds(0));
  return ran;
}

/// The reports of all processes as one. Errors: one that cannot be read.
result<run_report> join_reports(const process_parts &parts, const run_state &heard) {
  auto sum = report_of(parts, heard);
  for (const auto &one : heard.reports) {
    auto report = run_report_from_json(one.json);
    if (!report)
      return with_context(std::move(report).error(), "report of " + one.process);
    add(sum, *report);
  }
  return sum;
}

run_summary summarise(const process_parts &parts, const run_state &heard, const run_report &all) {
  const auto &counters = *all.counters;
  run_summary summary;
  summary.id = parts.config->id;
  summary.source = parts.stages.recording.string();
  summary.ranks = parts.config->plan.ranks;
  for (const auto &source : all.sources)
    if (source.counts) {
      summary.expected = *source.counts;
      summary.damage = source.damage;
      summary.torn = source.torn;
      break;
    }
  summary.entries = *heard.entries;
  summary.entries[episode_state::rejected] += counters.surplus;
  summary.unparsed = counters.unparsed;
  summary.duplicates = counters.duplicates;
  summary.late = counters.late;
  summary.too_late = count_too_late(summary.expected, summary.entries);
  summary.unnamed_records = counters.unnamed_records;
  summary.unnamed_bytes = counters.unnamed_bytes;
  if (!heard.all_received)
    hold_the_rest(summary);
  summary.differences = differences_of(summary, heard.all_received, counters.surplus);
  summary.steps = heard.steps;
  summary.grid_hash = heard.grid_hash;
  summary.counters = all.counters;
  summary.turns = all.turns;
  summary.peak_rss_bytes = all.peak_rss_bytes;
  summary.interrupted = heard.interrupted;
  summary.quarantine = all.quarantine;
  summary.damage_allowed = parts.options.allow_damage;
  return summary;
}

} // namespace

result<std::optional<run_summary>> run_process(const run_config &config,
                                               const process_options &process,
                                               const run_options &options, std::ostream &out) {
  for (const auto &folder : {options.dump, options.exports})
    if (!folder.empty())
      MILLRACE_TRY(check_step_folder(folder));
  auto state = state_folder::open(config.state);
  if (!state)
    return tl::unexpected(std::move(state).error());
  auto parts = prepare(config, process, options, *state, out);
  if (!parts)
    return tl::unexpected(std::move(parts).error());
  run_state heard;
  const auto begun = clock::now();
  const auto ran = run_actors(*parts, out, heard);
  const std::chrono::duration<double> took = clock::now() - begun;
  if (parts->stages.refused->count() > 0)
    state->keep();
  if (!ran)
    return tl::unexpected(ran.error());
  if (heard.failure)
    return tl::unexpected(*heard.failure);
  if (!parts->plans)
    return std::nullopt;
  const auto all = join_reports(*parts, heard);
  if (!all)
    return tl::unexpected(all.error());
  auto summary = summarise(*parts, heard, *all);
  summary.seconds = took.count();
  return summary;
}

process_options whole_run(const run_config &config) {
  process_options process;
  process.name = std::string(directory_process);
  process.actors = all_stages(config);
  process.directory = true;
  process.alone = true;
  return process;
}

} // namespace millrace
