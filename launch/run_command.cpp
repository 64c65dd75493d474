// SPDX-License-Identifier: Apache-2.0
#include "launch/run_command.hpp"

#include <iostream>
#include <optional>
#include <utility>

#include "actors/run.hpp"
#include "config/run_config.hpp"
#include "launch/summary_file.hpp"
#include "launch/terminal.hpp"
#include "runtime/log.hpp"

namespace millrace {
int run_command(const run_request &request) {
  log::set_up();
  const auto config = load_config(request.config, request.sets);
  if (!config)
    return complain(config.error());
  std::optional<output_file> json; // begun first: a path that cannot be is told before the work
  if (!request.json.empty()) {
    auto file = output_file::create(request.json);
    if (!file)
      return complain(file.error());
    json = *std::move(file);
  }
  run_options options;
  options.max_steps = request.steps;
  options.dump = request.dump;
  options.exports = request.exports;
  options.allow_damage = request.allow_damage;
  options.schedule_seed = request.schedule_seed;
  auto process = whole_run(*config);
  process.config_digest = shared_config_digest(*config).hex();
  process.settings = shared_toml(*config);
  process.program = MILLRACE_VERSION;
  if (request.schedule_seed != 0)
    std::cout << "schedule seed " << request.schedule_seed << '\n';
  const auto summary = run_process(*config, process, options, std::cout);
  if (!summary)
    return complain(summary.error());
  return finish_run(**summary, *config, std::move(json));
}

} // namespace millrace
