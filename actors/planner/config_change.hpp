// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/output_file.hpp"
#include "runtime/result.hpp"

namespace millrace {

/// A key whose value is not what it was at the last start, both as the config file writes them.
struct config_change {
  std::string key;
  std::string before; ///< empty: there was no such key
  std::string now;    ///< the same
};

/// What differs between two configs, in the order of the second. A key of an environment that one
/// of them does not name counts as env_default.* there.
/// @param before, now one line for each key, "key = value"; other lines are passed over.
std::vector<config_change> config_changes(std::string_view before, std::string_view now);

/// Whether what a log says would mean something else with another value of this key.
bool is_bound_to_log(std::string_view key);

/// Whether another value may reject episodes that a step in the log rests on: such a step could not
/// be made again.
bool decides_what_is_rejected(std::string_view key);

/// One line, of at most ten changes: "batch.traces 2 -> 4, seq_len 64 -> 128".
std::string text_of(const std::vector<config_change> &changes);

/// STATE/config.toml: the settings of the last start. What it says is compared, and never used.
std::filesystem::path config_file(const std::filesystem::path &state);

/// What the file says; empty if there is none. Errors: io, too_large.
result<std::string> read_config_file(const std::filesystem::path &state);

/// Writes it, whole or not at all, if it says something else. Errors: no_space, io.
status write_config_file(const std::filesystem::path &state, std::string_view settings,
                         file_sync sync);

} // namespace millrace
