// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "runtime/append_file.hpp"
#include "schema/log_records.hpp"
#include "schema/record_framing.hpp"

namespace millrace {

/// The first bytes of the file.
inline constexpr std::array<char, 8> planner_log_magic{'\x89', 'M',  'R',  'L',
                                                       'G',    '\r', '\n', '\x1a'};

/// record_header::kind of its records; which one it is stands in the body.
inline constexpr std::uint32_t planner_log_record = 1;

/// Takes one record of a log, in order; `offset` is its place in the file. What it answers as an
/// error ends the reading with that error. Frames of the record keep the mapped file alive.
using log_visitor = std::function<status(std::uint64_t offset, log_record what)>;

/// How far a log could be read.
struct log_extent {
  std::uint64_t records = 0;
  std::uint64_t bytes = 0; ///< up to the end of its last good record; 0: its header is not whole
  std::optional<torn_tail> torn; ///< what stands behind it
};

/// The planner's log (STATE/planner.log): records that are appended and never changed.
/// Source: docs/formats.md, "The planner's log". Thread: one at a time.
class planner_log {
public:
  struct options {
    bool sync = true; ///< false: sync() does nothing; a machine that loses power loses records
  };

  /// Locks the file, makes it if there is none, gives every record to `each` and stands at the end.
  /// A torn tail is cut off, with a warning.
  /// Errors: conflict (another process has it open); damaged, unsupported (a later format or a
  /// record that only a later version knows), bad_format (no planner's log): the file is as it was;
  /// not_found (no folder), bad_argument (`path` is not a regular file), io, no_space; those of
  /// `each`.
  static result<planner_log> open(const std::filesystem::path &path, options how,
                                  const log_visitor &each);

  /// Appends one record, which nothing may rest on before sync().
  /// Errors: no_space (disk, quota or size limit is full: the log is as before, the record can be
  /// appended again); io; those of encode.
  status append(const log_record &what);

  /// Puts what was appended on the disk. Errors: io; then nobody knows what is on the disk, and
  /// every later call of append and sync returns the same error.
  status sync();

  /// Bytes of the file.
  std::uint64_t size() const noexcept { return file_.size(); }
  const std::filesystem::path &path() const noexcept { return file_.path(); }
  /// What open() cut off.
  const std::optional<torn_tail> &cut_off() const noexcept { return cut_off_; }

private:
  explicit planner_log(append_file file) : file_(std::move(file)) {}

  status cut(const log_extent &good);
  status create();

  append_file file_;
  std::optional<torn_tail> cut_off_;
};

/// True if the file begins as a planner's log does; false for any other, also for none.
bool is_planner_log(const std::filesystem::path &path);

/// Only reads a log, also one that a planner has open. Every record before the first damage is
/// given to `each`. Errors: as for planner_log::open, and not_found. The file must not be cut
/// meanwhile (map_file): a planner only does that when it starts, or when the disk is full.
result<log_extent> read_planner_log(const std::filesystem::path &path, const log_visitor &each);
/// The same over bytes in memory; `name` stands for the path in messages.
result<log_extent> read_planner_log(const frame &bytes, const std::string &name,
                                    const log_visitor &each);

} // namespace millrace
