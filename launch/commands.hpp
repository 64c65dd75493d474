// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "schema/synth.hpp"

namespace millrace {

// The subcommands: each calls what does the work, prints what came of it, and gives the exit code.

struct import_request {
  std::filesystem::path traces;
  std::filesystem::path out;
  bool eval = false;
};
int import_command(const import_request &request);

struct synth_request {
  synth_options options;
  std::filesystem::path out;
};
int synth_command(const synth_request &request);

struct inspect_request {
  std::filesystem::path file; ///< a recording or a planner's log
  bool json = false;
  bool allow_damage = false;
};
int inspect_command(const inspect_request &request);

struct conform_request {
  std::filesystem::path cases; ///< folder
};
int conform_command(const conform_request &request);

struct config_request {
  std::filesystem::path config;
  std::vector<std::string> sets; ///< "key=value", later ones win
};
int config_command(const config_request &request);

struct keygen_request {
  std::filesystem::path folder;
};
int keygen_command(const keygen_request &request);

} // namespace millrace
