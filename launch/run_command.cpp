// SPDX-License-Identifier: Apache-2.0
#include "launch/run_command.hpp"

#include <iostream>
#include <sstream>

#include "actors/run.hpp"
#include "config/run_config.hpp"
#include "launch/terminal.hpp"
#include "runtime/file.hpp"
#include "runtime/log.hpp"

namespace millrace {

int run_command(const run_request &request) {
  log::set_up();
  const auto config = load_config(request.config, request.sets);
  if (!config)
    return complain(config.error());
  run_options options;
  options.max_steps = request.steps;
  options.dump = request.dump;
  options.allow_damage = request.allow_damage;
  options.schedule_seed = request.schedule_seed;
  if (request.schedule_seed != 0)
    std::cout << "schedule seed " << request.schedule_seed << '\n';
  const auto summary = run_pipeline(*config, options, std::cout);
  if (!summary)
    return complain(summary.error());
  std::ostringstream text;
  print(*summary, text);
  const int code = print_and_exit(text.str(), summary->ok() ? exit_ok : exit_failed);
  if (request.json.empty())
    return code;
  const auto written =
      write_file_atomically(request.json, json::dump(to_json(*summary), 2) + "\n");
  return written ? code : complain(written.error());
}

} // namespace millrace
