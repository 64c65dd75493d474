// SPDX-License-Identifier: Apache-2.0
#include "launch/run_command.hpp"

#include <iostream>
#include <optional>
#include <span>
#include <utility>

#include "actors/run.hpp"
#include "config/run_config.hpp"
#include "launch/terminal.hpp"
#include "runtime/log.hpp"
#include "runtime/output_file.hpp"

namespace millrace {
namespace {

/// Why a run that came to its end is not a success.
error complaint_of(const run_summary &summary) {
  if (!summary.balanced())
    return {errc::conflict,
            fmt::format("run {}: the ledger does not balance with {}", summary.id, summary.source)};
  if (!summary.interrupted.empty())
    return {errc::peer_lost, fmt::format("run {}: {}", summary.id, summary.interrupted)};
  return {errc::damaged, fmt::format("run {}: {} is damaged; --allow-damage takes what is left",
                                     summary.id, summary.source)};
}

status write_json(output_file file, const run_summary &summary, const run_config &config) {
  auto tree = to_json(summary);
  tree["config_digest"] = config_digest(config).hex();
  const std::string text = json::dump(tree, 2) + "\n";
  MILLRACE_TRY(file.write(std::as_bytes(std::span(text))));
  return file.finish();
}

} // namespace

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
  options.allow_damage = request.allow_damage;
  options.schedule_seed = request.schedule_seed;
  if (request.schedule_seed != 0)
    std::cout << "schedule seed " << request.schedule_seed << '\n';
  const auto summary = run_pipeline(*config, options, std::cout);
  if (!summary)
    return complain(summary.error());
  print(*summary, std::cout);
  int code = flush_and_exit(exit_ok);
  if (!summary->ok())
    code = complain(complaint_of(*summary));
  if (json)
    if (const status written = write_json(*std::move(json), *summary, *config); !written)
      code = complain(written.error());
  return code;
}

} // namespace millrace
