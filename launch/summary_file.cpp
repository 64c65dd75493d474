// SPDX-License-Identifier: Apache-2.0
#include "launch/summary_file.hpp"

#include <iostream>
#include <span>
#include <utility>

#include "config/run_config.hpp"
#include "launch/terminal.hpp"

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

int finish_run(const run_summary &summary, const run_config &config,
               std::optional<output_file> json) {
  print(summary, std::cout);
  int code = flush_and_exit(exit_ok);
  if (!summary.ok())
    code = complain(complaint_of(summary));
  if (json)
    if (const status written = write_json(*std::move(json), summary, config); !written)
      code = complain(written.error());
  return code;
}

} // namespace millrace
