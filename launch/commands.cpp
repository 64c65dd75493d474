// SPDX-License-Identifier: Apache-2.0
#include "launch/commands.hpp"

#include <iostream>
#include <system_error>

#include "actors/conform/conform.hpp"
#include "config/run_config.hpp"
#include "launch/terminal.hpp"
#include "runtime/text_table.hpp"
#include "schema/import/import.hpp"
#include "schema/inspect.hpp"
#include "schema/inspect_log.hpp"
#include "transport/curve.hpp"

namespace millrace {

int import_command(const import_request &request) {
  std::error_code ignored;
  if (std::filesystem::equivalent(request.traces, request.out, ignored))
    return complain({errc::bad_argument,
                     fmt::format("{} would be replaced by the recording: name another file to -o",
                                 request.out.string())});
  const auto summary = import_file(request.traces, request.out, {.eval = request.eval});
  if (!summary)
    return complain(summary.error());
  const int code = print_and_exit(summary->text());
  if (code == exit_ok && summary->imported() == 0)
    return complain({errc::bad_value, fmt::format("{}: nothing was imported; {} is not written",
                                                  request.traces.string(), request.out.string())});
  return code;
}

int synth_command(const synth_request &request) {
  const auto made = synthesize(request.options, request.out);
  if (!made)
    return complain(made.error());
  return print_and_exit(fmt::format("{}: {} episodes in {} groups, {} tokens\n",
                                    request.out.string(), grouped(made->episodes),
                                    grouped(made->groups.size()), grouped(made->tokens)));
}

namespace {

int inspect_log_command(const inspect_request &request) {
  const auto summary = inspect_log(request.file);
  if (!summary)
    return complain(summary.error());
  const int code =
      print_and_exit(request.json ? json::dump(json_of(*summary), 2) + "\n" : text_of(*summary));
  if (code == exit_ok && !summary->damage.empty() && !request.allow_damage)
    return complain({errc::damaged, summary->damage});
  return code;
}

} // namespace

int inspect_command(const inspect_request &request) {
  if (is_planner_log(request.file))
    return inspect_log_command(request);
  const auto summary = inspect_recording(request.file);
  if (!summary)
    return complain(summary.error());
  const std::string text =
      request.json ? json::dump(json_of(*summary), 2) + "\n" : text_of(*summary);
  const int code = print_and_exit(text);
  if (code == exit_ok && summary->damaged() && !request.allow_damage)
    return complain(
        {errc::damaged, fmt::format("{} is damaged: {} bytes skipped at {} places; --allow-damage "
                                    "takes what is left",
                                    request.file.string(), grouped(summary->bytes_skipped),
                                    grouped(summary->damage_count))});
  return code;
}

int conform_command(const conform_request &request) {
  const auto outcome = conform(request.cases, std::cout);
  if (!outcome)
    return complain(outcome.error());
  return flush_and_exit(outcome->failed == 0 ? exit_ok : exit_failed);
}

int config_command(const config_request &request) {
  const auto config = load_config(request.config, request.sets);
  return config ? print_and_exit(to_toml(*config)) : complain(config.error());
}

int keygen_command(const keygen_request &request) {
  const auto keys = make_keys(request.folder);
  if (!keys)
    return complain(keys.error());
  const std::string folder = request.folder.string();
  return print_and_exit(
      fmt::format("public key: {}\n"
                  "in the config of every process: curve.folder = \"{}\"\n"
                  "  and, the directory's public key: curve.directory_key = \"{}\"\n"
                  "one folder for all: copy {} to every host, keep secret.key at mode 0600\n"
                  "one for each: a line KEY ROLE[,ROLE...] [NAME] in {}/allowed for every key that "
                  "may come in\n",
                  keys->public_key, folder, keys->public_key, folder, folder));
}

} // namespace millrace
