// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "actors/run_config.hpp"
#include "runtime/result.hpp"

namespace millrace {

/// Reads a config file (TOML), then `sets` in their order, each "key=value"; later ones win.
/// Errors: all that there are, each one line with the key, its place (FILE:LINE or --set) and what
/// is wanted; none of them touched anything.
tl::expected<run_config, std::vector<error>> load_config(const std::filesystem::path &file,
                                                         std::span<const std::string> sets);

} // namespace millrace
