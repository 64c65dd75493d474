// SPDX-License-Identifier: Apache-2.0
#include "launch/actor_command.hpp"

#include <array>
#include <iostream>
#include <optional>
#include <utility>

#include <unistd.h>

#include "actors/run.hpp"
#include "config/run_config.hpp"
#include "launch/summary_file.hpp"
#include "launch/terminal.hpp"
#include "runtime/log.hpp"
#include "runtime/nearest.hpp"

namespace millrace {
namespace {

constexpr std::array roles{role::directory, role::env_reader, role::assembler, role::scorer,
                           role::planner,   role::packer,     role::trainer};

result<std::vector<role>> read_roles(std::string_view text) {
  std::vector<role> out;
  while (!text.empty()) {
    const auto comma = std::min(text.find(','), text.size());
    const auto name = text.substr(0, comma);
    const auto what = role_of(name);
    if (!what || *what == role::host) {
      std::vector<std::string_view> names;
      for (auto each : roles)
        names.push_back(to_string(each));
      const auto guess = nearest(name, names);
      return fail(errc::bad_argument, "unknown role '{}'{}", name,
                  guess ? fmt::format("; did you mean '{}'?", *guess)
                        : "; directory, env-reader, assembler, scorer, planner, packer and "
                          "trainer are known");
    }
    if (std::find(out.begin(), out.end(), *what) != out.end())
      return fail(errc::bad_argument, "role {} is given twice", name);
    out.push_back(*what);
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  if (out.empty())
    return fail(errc::bad_argument, "no role is given");
  return out;
}

/// "scorer-NAME"; without a name one that no other process has.
std::string name_of(role what, const std::string &given) {
  const auto prefix = fmt::format("{}-", to_string(what));
  if (!given.empty())
    return given.starts_with(prefix) ? given : prefix + given;
  std::array<char, 256> host{};
  static_cast<void>(::gethostname(host.data(), host.size() - 1));
  return fmt::format("{}{}-{}", prefix, host.data(), ::getpid());
}

result<actor_spec> reader_of(const actor_request &request, const run_config &config) {
  const auto name = request.name.empty() ? std::string("0") : request.name;
  const auto full = name_of(role::env_reader, name);
  const auto number = number_in(full);
  const auto count = config.instances.env_readers;
  if (!number || *number >= count || (request.name.empty() && count > 1))
    return fail(errc::bad_argument,
                "an env reader is one of env_reader.instances = {}: give --name 0 to --name {}",
                count, count - 1);
  return actor_spec{role::env_reader, full, *number};
}

result<actor_spec> trainer_of(const actor_request &request, const run_config &config) {
  const auto ranks = config.plan.ranks;
  const auto rank = request.rank.value_or(0);
  if (rank >= ranks || (!request.rank && ranks > 1))
    return fail(errc::bad_argument,
                "a trainer is one of trainer.ranks = {}: give --rank 0 to --rank {}", ranks,
                ranks - 1);
  return actor_spec{role::trainer, fmt::format("trainer-{}", rank), rank};
}

/// One actor of each role; of several roles without a name, as many as the config says.
result<std::vector<actor_spec>>
actors_of(const actor_request &request, const std::vector<role> &wanted, const run_config &config) {
  std::vector<actor_spec> out;
  const bool all = wanted.size() > 1 && request.name.empty() && !request.rank;
  if (all) {
    for (const auto &spec : all_stages(config))
      if (std::find(wanted.begin(), wanted.end(), spec.what) != wanted.end())
        out.push_back(spec);
    return out;
  }
  for (auto what : wanted) {
    result<actor_spec> spec = actor_spec{what, name_of(what, request.name), 0};
    if (what == role::env_reader)
      spec = reader_of(request, config);
    else if (what == role::trainer)
      spec = trainer_of(request, config);
    else if (what == role::planner)
      spec = actor_spec{what, "planner", 0};
    if (!spec)
      return tl::unexpected(std::move(spec).error());
    if (what != role::directory)
      out.push_back(std::move(*spec));
  }
  return out;
}

} // namespace

int actor_command(const actor_request &request) {
  log::set_up();
  const auto config = load_config(request.config, request.sets);
  if (!config)
    return complain(config.error());
  const auto wanted = read_roles(request.roles);
  if (!wanted)
    return complain(wanted.error());
  auto actors = actors_of(request, *wanted, *config);
  if (!actors)
    return complain(actors.error());
  const bool plans = std::find(wanted->begin(), wanted->end(), role::planner) != wanted->end();
  if (!plans && (!request.json.empty() || request.steps != 0))
    return complain(error{errc::bad_argument, "--json and --steps go with the planner"});
  std::optional<output_file> json; // begun first: a path that cannot be is told before the work
  if (!request.json.empty()) {
    auto file = output_file::create(request.json);
    if (!file)
      return complain(file.error());
    json = *std::move(file);
  }
  process_options process;
  process.directory = std::find(wanted->begin(), wanted->end(), role::directory) != wanted->end();
  process.name = process.directory ? "directory" : actors->front().name;
  process.actors = *std::move(actors);
  process.config_digest = shared_config_digest(*config).hex();
  process.settings = shared_toml(*config);
  process.program = MILLRACE_VERSION;
  process.endpoint_file = request.endpoint_file;
  run_options options;
  options.max_steps = request.steps;
  options.dump = request.dump;
  options.exports = request.exports;
  options.allow_damage = request.allow_damage;
  const auto summary = run_process(*config, process, options, std::cout);
  if (!summary)
    return complain(summary.error());
  if (!*summary)
    return flush_and_exit(exit_ok);
  return finish_run(**summary, *config, std::move(json));
}

} // namespace millrace
