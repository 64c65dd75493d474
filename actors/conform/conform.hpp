// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <ostream>

#include "runtime/result.hpp"

namespace millrace {

/// Cases by outcome.
struct conform_summary {
  std::size_t passed = 0;
  std::size_t failed = 0;
};

/// Runs every JSON file in the folders graph, scoring, packing, partition and loss of `dir`, in
/// this order, by name. Writes a line for each case that failed, with its name and why, and
/// last "N passed, N failed". Errors: not_found if there is no folder or no case in it; io.
result<conform_summary> conform(const std::filesystem::path &dir, std::ostream &out);

} // namespace millrace
