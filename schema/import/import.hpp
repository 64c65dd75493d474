// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "runtime/result.hpp"
#include "schema/import/summary.hpp"
#include "schema/sealed_episode.hpp"

namespace millrace {

struct import_options {
  /// Take episodes for evaluation too; they stay marked as such.
  bool eval = false;
  /// A longer line is refused. Unit: bytes. Larger: more memory while it is parsed, about 10 times
  /// the line at worst.
  std::size_t line_bytes = std::size_t{256} << 20;
  /// How many notes are kept; all are counted. Larger: longer reports.
  std::size_t notes = 100;
};

/// Where episodes go. An error from either function ends the import with it.
struct import_sink {
  /// A group with at least one episode, before its first one: how many it has.
  std::function<status(const group_key &, std::uint32_t size)> group;
  /// An episode of that group, checked and sealed, and its text, a body of wire::EpisodeText.
  std::function<status(const sealed_episode &, const frame &text)> episode;
};

/// Imports the records of a text of JSON lines in a published format (docs/import.md). Groups come
/// in the order of their first record, each in one go: the size, then its episodes by slot. What is
/// not usable is noted and counted; it is no error.
/// @param name stands for the file in messages.
/// Errors: those of the sink; too_large over 2^32 - 1 episodes in a group.
result<import_summary> import_text(std::string_view text, std::string name,
                                   const import_options &options, const import_sink &sink);

/// Imports a file into a recording. If nothing was imported there is no recording, and
/// summary.imported() is 0. Errors: not_found, io; bad_argument if both are one file.
result<import_summary> import_file(const std::filesystem::path &in,
                                   const std::filesystem::path &out, const import_options &options);

} // namespace millrace
