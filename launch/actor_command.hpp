// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace millrace {

/// `millrace actor`: roles of a run in this process, until the run is over.
struct actor_request {
  std::string roles; ///< "assembler,scorer"
  std::filesystem::path config;
  std::vector<std::string> sets;
  std::string name;                    ///< empty: made up
  std::optional<std::uint32_t> rank;   ///< of a trainer
  std::uint64_t steps = 0;             ///< 0: until data ends; with the planner
  std::filesystem::path json;          ///< with the planner
  std::filesystem::path dump;          ///< with trainers
  std::filesystem::path exports;       ///< with trainers
  bool allow_damage = false;           ///< with the planner
  std::filesystem::path endpoint_file; ///< gets the endpoint of this process
};
int actor_command(const actor_request &request);

} // namespace millrace
