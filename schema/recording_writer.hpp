// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "runtime/output_file.hpp"
#include "schema/recording_counts.hpp"

namespace millrace {

/// Writes a recording. The file appears under its name when finish() has written the index; until
/// then, and for ever after a failure, there is only a temporary file beside it, which the
/// destructor removes. Thread: one at a time.
class recording_writer {
public:
  /// @param source name of the source, for people; cut to 40 bytes at a character.
  /// Errors: io.
  static result<recording_writer> create(const std::filesystem::path &path,
                                         std::string_view source);

  /// Appends a record of any kind but index: a body and its parts, as its encoder made them. It is
  /// parsed, and counted for the index.
  /// Errors: io (a full disk, a size limit: then finish() fails too); bad_format, bad_value,
  /// too_large for parts that are not a record of that kind: nothing was written.
  status append(record_kind kind, const message &parts);
  /// The same for an episode that is parsed already.
  status append(const sealed_episode &episode);
  status append(const episode_frame &frame);
  status append_group_size(const group_key &key, std::uint32_t size);

  /// Writes the index, syncs and renames. Errors: io.
  status finish();

  /// What was appended so far.
  recording_counts counts() const { return tally_.counts(); }
  /// Bytes of the file so far.
  std::uint64_t bytes() const noexcept { return file_.size(); }

private:
  explicit recording_writer(output_file file) : file_(std::move(file)) {}

  status write(record_kind kind, const message &parts);

  output_file file_;
  recording_tally tally_;
  std::uint64_t records_ = 0;
};

} // namespace millrace
