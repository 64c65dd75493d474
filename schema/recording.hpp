// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "schema/body.hpp"
#include "schema/record_framing.hpp"

namespace millrace {

/// What a record of a recording holds. The numbers stand in files: append-only.
enum class record_kind : std::uint32_t {
  frame = 1,          ///< one message of an episode: wire::EpisodeFrame and its arrays
  sealed_episode = 2, ///< a finished episode: wire::SealedIndex and its parts
  group_size = 3,     ///< wire::GroupSize
  text = 4,           ///< wire::EpisodeText, for people
  index = 5,          ///< wire::RecordingIndex, the last record of a finished file
  journal_open = 6,   ///< wire::JournalOpen: the file is a segment of an assembler's journal
  arrival = 7,        ///< wire::JournalArrival: how what follows came to the assembler
};
inline constexpr std::uint32_t last_record_kind = 7;

/// "frame", "sealed episode", "group size", "text", "index", "journal open", "arrival".
std::string_view to_string(record_kind kind) noexcept;

/// One record, its bytes checked against its checksum. The parts lie in the mapping and keep it
/// alive.
struct record {
  record_kind kind = record_kind::frame;
  std::uint64_t offset = 0; ///< of its header in the file
  message parts;
};

/// Bytes that were skipped, and why.
struct recording_damage {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::string reason;

  /// "offset 4096: 112 bytes skipped: ..."
  std::string text() const;
};

/// Reads the records of a recording one after the other, without copying them. Nothing in the file
/// is trusted: what does not fit its checksum is skipped and listed, and reading goes on at the
/// next valid header. Bodies are not parsed: parse() of their type does that.
/// Thread: one at a time; the records may go anywhere.
class recording_reader {
public:
  /// Maps a file and reads its header. Errors: not_found, io; bad_format if it is empty or not a
  /// recording; unsupported for another format version.
  static result<recording_reader> open(const std::filesystem::path &path);

  /// The same over bytes in memory; `name` stands for the path in messages.
  static result<recording_reader> over(frame bytes, std::string name);

  /// The next good record, or nothing at the end. The closing index is not among them: see index().
  std::optional<record> next();

  const std::string &name() const noexcept { return name_; }
  /// Name of the source, as its writer gave it.
  const std::string &source() const noexcept { return source_; }
  /// Size of the file, and how far it has been read.
  std::uint64_t bytes() const noexcept { return bytes_.size(); }
  std::uint64_t position() const noexcept { return at_; }

  /// The rest tells what was found so far: all of it once next() has returned nothing.

  /// True once the closing index was read: its writer called finish().
  bool finished() const noexcept { return index_.has_value(); }
  const std::optional<body<wire::RecordingIndex>> &index() const noexcept { return index_; }
  /// The first 1,000 damaged places; then how many there are, and the bytes skipped over all.
  const std::vector<recording_damage> &damage() const noexcept { return damage_; }
  std::uint64_t damage_count() const noexcept { return damage_count_; }
  std::uint64_t bytes_skipped() const noexcept { return bytes_skipped_; }
  const std::optional<torn_tail> &torn() const noexcept { return torn_; }
  /// Records returned by next().
  std::uint64_t records() const noexcept { return records_; }

private:
  recording_reader(frame bytes, std::string name);

  status read_file_header();
  result<record> read_body(const recording_format::record_header &header) const;
  void skip_broken(const recording_format::record_header &header, std::string reason);
  void skip_to(std::uint64_t offset, std::string reason);
  void report(recording_damage what);
  void read_index(const record &last);
  void read_tail();

  frame bytes_;
  std::string name_;
  std::string source_;
  std::uint64_t at_ = 0;
  std::uint64_t records_ = 0;
  std::uint64_t rescan_budget_ = 0;
  std::vector<recording_damage> damage_;
  std::uint64_t damage_count_ = 0;
  std::uint64_t bytes_skipped_ = 0;
  std::optional<torn_tail> torn_;
  std::optional<body<wire::RecordingIndex>> index_;
};

} // namespace millrace
