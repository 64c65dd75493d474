// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace millrace {

struct run_request {
  std::filesystem::path config;
  std::vector<std::string> sets; ///< "key=value", later ones win
  std::uint64_t steps = 0;       ///< 0: until data ends
  std::filesystem::path json;    ///< empty: no summary file
  std::filesystem::path dump;    ///< empty: no tensors
  std::filesystem::path exports; ///< empty: no tokens
  bool allow_damage = false;
  std::uint64_t schedule_seed = 0; ///< not 0: perturb the order of events
};
int run_command(const run_request &request);

} // namespace millrace
