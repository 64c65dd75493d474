// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace millrace {

// The subcommands that attach to a running system. They ask its directory, and exit 1 if nobody
// answers.

/// Where to find the directory: --config names its endpoint and its keys, --connect an endpoint.
/// With both, --connect wins and the keys are those of the config.
struct attach_request {
  std::filesystem::path config;
  std::vector<std::string> sets; ///< "key=value", over what config says
  std::string connect;
  double wait_s = 5; ///< for an answer
};

struct status_request {
  attach_request where;
  bool json = false;
};
/// Asks twice, a second apart, for the rates.
int status_command(const status_request &request);

struct why_request {
  attach_request where;
  bool json = false;
};
int why_command(const why_request &request);

struct top_request {
  attach_request where;
  double interval_s = 2;
  bool once = false;
};
/// Status and waits, again and again; redrawn on a terminal. Ends when nobody answers any more.
int top_command(const top_request &request);

struct drain_request {
  attach_request where;
  std::string name; ///< of an actor or a process
};
/// Prints what comes of it; exits 1 if it is refused.
int drain_command(const drain_request &request);

} // namespace millrace
