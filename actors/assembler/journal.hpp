// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "actors/assembler/journal_segment.hpp"
#include "runtime/append_file.hpp"

namespace millrace {

struct journal_options {
  std::filesystem::path folder; ///< STATE/journal/NAME
  std::string run;              ///< run.id
  std::string assembler;        ///< its name
  bool sync = true; ///< false: sync() does nothing; a machine that loses power loses messages
  /// Unit: bytes. A segment that has so many is followed by another.
  std::uint64_t segment_bytes = std::uint64_t{256} << 20;
};

/// What an assembler has taken in and the run may need again, on disk: segment-000001.mrec and so
/// on, in the recording format, appended to and never changed. A segment goes when all its groups
/// are done for good. Nobody else has the folder open meanwhile. Source: docs/formats.md, "The
/// journal of an assembler". Thread: one at a time; it waits for the disk.
class journal {
public:
  /// Makes the folder if there is none, and reads what is in it. A torn tail is cut off, with a
  /// warning. Errors: conflict (another process has it), damaged, unsupported (a later format),
  /// bad_argument (of another run or assembler), io, no_space.
  static result<std::unique_ptr<journal>> open(journal_options how);

  /// Whose run it is. To be called before append(), with the same folder every time.
  /// Errors: conflict: what is here is of another planner's folder.
  status begin(const digest128 &folder);
  bool begun() const noexcept { return folder_.has_value(); }

  /// Appends a message, on which nothing may rest before sync(). Errors: no_space: nothing has
  /// changed, it can be tried again; io.
  status append(const arrival &what);
  /// Puts what was appended on the disk. Errors: io, for good.
  status sync();

  bool has(group_ref ref) const { return groups_.contains(ref); }
  /// Whether this message was appended.
  bool has(const safe_message &name) const;
  /// The groups of which there is something, in order.
  std::vector<group_ref> groups() const;
  std::size_t size() const noexcept { return groups_.size(); }
  /// Bytes of all segments.
  std::uint64_t bytes() const noexcept;

  /// What was appended of a group, in order. The messages keep the mapped file alive.
  /// Errors: damaged, io.
  result<std::vector<arrival>> read(group_ref ref,
                                    const std::shared_ptr<memory_meter> &meter = nullptr);

  /// The group is done for good.
  void forget(group_ref ref);

private:
  struct segment {
    std::filesystem::path path;
    std::uint64_t bytes = 0;
    frame mapped; ///< the first of them, or none
    std::set<group_ref> groups;
  };
  struct place {
    std::uint64_t segment = 0; ///< number
    journal_entry entry;
  };

  journal(journal_options how, append_file lock)
      : options_(std::move(how)), lock_(std::move(lock)) {}

  status load();
  status load_segment(std::uint64_t number, bool last);
  status take_owner(const journal_owner &who, const std::filesystem::path &path);
  status cut(std::uint64_t number, const segment_contents &found);
  status make_room();
  status open_segment();
  status write_record(std::uint32_t kind, const message &parts);
  result<frame> bytes_of(std::uint64_t number, std::uint64_t end);
  void remove(std::uint64_t number);
  std::filesystem::path path_of(std::uint64_t number) const;

  const journal_options options_;
  append_file lock_;                   ///< an empty file beside the segments
  std::optional<digest128> folder_;    ///< of the planner; none: not told yet
  std::optional<journal_owner> owner_; ///< as the segments say
  std::map<std::uint64_t, segment> segments_;
  std::uint64_t next_ = 1;          ///< number of the segment that will be made
  std::optional<append_file> last_; ///< the segment with the highest number, while it grows
  std::map<group_ref, std::vector<place>> groups_;
};

} // namespace millrace
