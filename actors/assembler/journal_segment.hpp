// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "actors/interfaces.hpp"
#include "schema/record_framing.hpp"

namespace millrace {

/// What a reader sends of a group, and an assembler keeps in its journal.
using arrival = std::variant<frame_arrived, episode_arrived, episode_rejected, group_sized>;

group_ref group_of(const arrival &what) noexcept;
const std::shared_ptr<const group_info> &info_of(const arrival &what) noexcept;
/// What a reader calls it; nothing for a size.
std::optional<safe_message> name_of(const arrival &what);

/// Whose journal it is: the first record of every segment.
struct journal_owner {
  std::string run;  ///< run.id
  digest128 folder; ///< of the planner
  std::string assembler;

  bool operator==(const journal_owner &) const = default;
};

/// The record of it.
message encode(const journal_owner &who);

/// The record that stands before a message. Without `with_info` it says nothing of the group but
/// its place.
message encode_note(const arrival &what, bool with_info);
/// The message itself, and its record's kind; no parts: none follows.
struct journal_body {
  std::uint32_t kind = 0;
  message parts;
};
journal_body body_of(const arrival &what);

/// A message in a segment.
struct journal_entry {
  std::uint64_t offset = 0; ///< of its note
  std::uint64_t bytes = 0;  ///< of note and body
  group_ref group;
  std::shared_ptr<const group_info> info; ///< what is known of the group here
  std::optional<safe_message> name;       ///< none: a size
};

/// What a file of a journal holds.
struct segment_contents {
  std::optional<journal_owner> owner; ///< none: the file was just made
  std::vector<journal_entry> entries;
  std::uint64_t bytes = 0;       ///< up to the end of the last good message
  std::optional<torn_tail> torn; ///< what stands behind it
};

/// Reads a segment. `path` stands in messages, `assembler` must be who wrote it.
/// @param may_be_torn it is the last one: only there a message can have been in the making.
/// Errors: damaged, unsupported (a later format), bad_format (no recording): with its place, and
/// what to do.
result<segment_contents> read_segment(const frame &bytes, const std::string &path,
                                      const std::string &assembler, bool may_be_torn);

/// The message of an entry, from the segment's bytes; it keeps them alive. Errors: damaged.
result<arrival> read_entry(const frame &bytes, const std::string &path, const journal_entry &entry,
                           const std::shared_ptr<memory_meter> &meter);

} // namespace millrace
