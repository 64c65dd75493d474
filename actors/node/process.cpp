// SPDX-License-Identifier: Apache-2.0
#include "actors/node/process.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <utility>

#include "actors/state_folder.hpp"
#include "runtime/log.hpp"
#include "transport/curve.hpp"

namespace millrace {

namespace {

std::string machine_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? std::string(name.data()) : "unknown";
}

std::string bind_of(const run_config &config, const process_options &process,
                    const std::filesystem::path &state) {
  if (process.alone)
    return "ipc://" + control_socket(std::filesystem::absolute(state)).string();
  if (process.directory)
    return config.link.directory;
  if (config.link.bind == "ipc")
    return "ipc://" + (std::filesystem::absolute(state) / (process.name + ".sock")).string();
  return config.link.bind;
}

} // namespace

result<hub_options> hub_options_of(const run_config &config, const process_options &process,
                                   const std::filesystem::path &state, const actor_context &context,
                                   std::shared_ptr<memory_meter> memory) {
  hub_options out;
  out.bind = bind_of(config, process, state);
  out.advertise = config.link.advertise;
  out.limits = config.link.limits();
  out.memory = std::move(memory);
  out.memory_limit = config.memory_limit;
  out.insecure = config.link.insecure;
  if (!config.link.curve_folder.empty() && !process.alone) {
    auto keys = load_keys(config.link.curve_folder);
    if (!keys)
      return tl::unexpected(std::move(keys).error());
    out.curve = std::move(*keys);
  }
  out.self = {config.id,           process.name,    {},
              context.incarnation, process.program, process.config_digest};
  if (process.directory)
    out.self.roles.emplace_back(to_string(role::directory));
  for (const auto &actor : process.actors)
    if (std::string name(to_string(actor.what));
        std::ranges::find(out.self.roles, name) == out.self.roles.end())
      out.self.roles.push_back(std::move(name));
  return out;
}

process_entry entry_of(const process_options &process, const hub_options &options) {
  process_entry out;
  out.process = process.name;
  out.incarnation = options.self.incarnation;
  if (options.curve)
    out.key = options.curve->mine.public_key;
  if (process.directory)
    out.actors.push_back({role::directory, std::string(to_string(role::directory))});
  for (const auto &actor : process.actors) {
    out.actors.push_back({actor.what, actor.what == role::trainer
                                          ? fmt::format("feeder-{}", actor.number)
                                          : actor.name});
    if (actor.what == role::planner)
      out.actors.push_back({role::host, "supervisor"});
  }
  return out;
}

process_status status_source::operator()() const {
  process_status out;
  out.host = machine_name();
  out.pid = static_cast<std::uint64_t>(::getpid());
  out.program = program;
  out.uptime_ms = static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(
                                                 std::chrono::steady_clock::now() - started)
                                                 .count());
  out.held = counters->memory->held;
  out.mapped = counters->mapped;
  out.limit = memory_limit;
  out.peak_rss = peak_rss();
  const auto &c = *counters;
  out.counters = {{"episodes", c.episodes},    {"tokens", c.tokens},
                  {"groups", c.groups},        {"groups_scored", c.groups_scored},
                  {"rejected", c.rejected},    {"duplicates", c.duplicates},
                  {"repeats", c.repeats},      {"refused_answers", c.refused_answers},
                  {"steps_cut", c.steps_cut},  {"steps_trained", c.steps_trained},
                  {"overdue", c.overdue},      {"version", c.version},
                  {"next_step", c.next_step},  {"backlog_steps", c.backlog_steps},
                  {"wire_bytes", c.wire_bytes}};
  if (const auto here = office.lock()) {
    const auto stats = here->stats();
    out.in_flight = stats.in_flight_bytes;
    for (const auto &[name, value] : {std::pair{"bytes_sent", stats.bytes_sent},
                                      {"bytes_received", stats.bytes_received},
                                      {"link_repeats", stats.repeats},
                                      {"link_garbage", stats.garbage},
                                      {"link_refusals", stats.refusals},
                                      {"link_auth_failures", stats.auth_failures},
                                      {"over_limit_bytes", stats.over_limit_bytes}})
      out.counters.push_back({name, value});
  }
  std::erase_if(out.counters, [](const auto &one) { return one.value == 0; });
  out.waits = counters->waits->snapshot();
  return out;
}

std::uint64_t peak_rss() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
}

} // namespace millrace
