// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "actors/run_config.hpp"
#include "runtime/digest.hpp"
#include "runtime/result.hpp"

namespace millrace {

/// Reads a config file (TOML), then `sets` in their order, each "key=value"; later ones win.
/// Errors: all that there are, each one line with the key, its place (FILE:LINE or --set) and what
/// is wanted.
tl::expected<run_config, std::vector<error>> load_config(const std::filesystem::path &file,
                                                         std::span<const std::string> sets);

/// The same over TOML text; `file` stands for its path in messages.
tl::expected<run_config, std::vector<error>> load_config_text(std::string_view text,
                                                              const std::filesystem::path &file,
                                                              std::span<const std::string> sets);

/// The config as TOML that loads as the same config: every key with its value in effect.
std::string to_toml(const run_config &config);

/// XXH3-128 over the bytes of to_toml(): equal for configs that mean the same.
digest128 config_digest(const run_config &config);

/// The same without the keys that may differ between the processes of a run: what they compare when
/// they meet.
digest128 shared_config_digest(const run_config &config);

/// What that is the digest of.
std::string shared_toml(const run_config &config);

} // namespace millrace
