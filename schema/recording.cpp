// SPDX-License-Identifier: Apache-2.0
#include "schema/recording.hpp"

#include <algorithm>
#include <cstring>

#include "runtime/mapping.hpp"
#include "schema/limits.hpp"

namespace millrace {

namespace format = recording_format;

std::string_view to_string(record_kind kind) noexcept {
  switch (kind) {
  case record_kind::frame:
    return "frame";
  case record_kind::sealed_episode:
    return "sealed episode";
  case record_kind::group_size:
    return "group size";
  case record_kind::text:
    return "text";
  case record_kind::index:
    return "index";
  case record_kind::journal_open:
    return "journal open";
  case record_kind::arrival:
    return "arrival";
  }
  return "unknown";
}

std::string recording_damage::text() const {
  return fmt::format("offset {}: {} bytes skipped: {}", offset, bytes, reason);
}

recording_reader::recording_reader(frame bytes, std::string name)
    : bytes_(std::move(bytes)), name_(std::move(name)), rescan_budget_(bytes_.size()) {}

result<recording_reader> recording_reader::open(const std::filesystem::path &path) {
  auto bytes = map_file(path);
  if (!bytes)
    return tl::unexpected(std::move(bytes).error());
  return over(std::move(*bytes), path.string());
}

result<recording_reader> recording_reader::over(frame bytes, std::string name) {
  recording_reader reader(std::move(bytes), std::move(name));
  MILLRACE_TRY(reader.read_file_header());
  return reader;
}

status recording_reader::read_file_header() {
  const auto all = bytes_.bytes();
  if (all.empty())
    return fail(errc::bad_format, "'{}' is empty, not a recording", name_);
  if (!starts_alike(all, format::file_magic))
    return fail(errc::bad_format,
                "'{}' is not a recording (.mrec); 'millrace import' makes one of trace files",
                name_);
  if (all.size() < sizeof(format::file_header))
    return fail(errc::bad_format, "'{}' is cut off after {} bytes, within the header of the file",
                name_, all.size());
  format::file_header header;
  std::memcpy(&header, all.data(), sizeof(header));
  const auto crc = crc_of(header);
  at_ = sizeof(header);
  if (crc != header.crc) {
    report({0, sizeof(header),
            fmt::format("the file header has checksum {:08x}, expected {:08x}", crc, header.crc)});
    return {};
  }
  if (header.version != format::version || header.flags != 0)
    return fail(errc::unsupported,
                "'{}' has format version {}, flags {:#x}; this program reads version {}, flags 0",
                name_, header.version, header.flags, format::version);
  const auto end = std::find(header.source.begin(), header.source.end(), '\0');
  source_.assign(header.source.begin(), end);
  return {};
}

/// Precondition: the record lies inside the file.
result<record> recording_reader::read_body(const format::record_header &header) const {
  const auto kind = record_kind{header.kind};
  auto parts = parts_of(bytes_, at_, header, limits::parts, to_string(kind));
  if (!parts)
    return tl::unexpected(std::move(parts).error());
  if (kind < record_kind::frame || header.kind > last_record_kind)
    return fail(errc::damaged, "a record of unknown kind {}", header.kind);
  return record{kind, at_, std::move(*parts)};
}

void recording_reader::report(recording_damage what) {
  constexpr std::size_t listed = 1000; // a hostile file could list more than it is long
  ++damage_count_;
  bytes_skipped_ += what.bytes;
  if (damage_.size() < listed)
    damage_.push_back(std::move(what));
}

void recording_reader::skip_to(std::uint64_t offset, std::string reason) {
  report({at_, offset - at_, std::move(reason)});
  at_ = offset;
}

/// Skips a record whose header is good and whose body is not. If another record (or the end)
/// follows where it says, that is where reading goes on. Otherwise bytes may be missing from its
/// middle: the next record may start inside of it. Every such search reads the rest of a body
/// again, so they share a budget of one file size: a file made of headers that all claim the same
/// bytes takes no longer than two readings.
void recording_reader::skip_broken(const format::record_header &header, std::string reason) {
  const auto end = at_ + sizeof(header) + header.body_bytes;
  if (end == bytes_.size() || header_at(bytes_.bytes(), end) ||
      header.body_bytes > rescan_budget_) {
    skip_to(end, std::move(reason));
    return;
  }
  rescan_budget_ -= header.body_bytes;
  skip_to(next_header_after(bytes_.bytes(), at_ + 1), std::move(reason));
}

/// What follows the closing index is not part of the recording.
void recording_reader::read_index(const record &last) {
  auto index = parse<wire::RecordingIndex>(last.parts.front());
  if (!index) {
    report({last.offset, at_ - last.offset, std::move(index).error().message});
    return;
  }
  if ((*index)->records() != records_)
    report({last.offset, 0,
            fmt::format("the index was written after {} records, {} were read", (*index)->records(),
                        records_)});
  index_ = std::move(*index);
  if (at_ < bytes_.size())
    skip_to(bytes_.size(), "bytes after the closing index");
}

/// The bytes from here on are no record that fits the file: a record that was being written, or
/// damage.
void recording_reader::read_tail() {
  const auto next = next_header_after(bytes_.bytes(), at_ + 1);
  const auto rest = bytes_.bytes().subspan(at_);
  const bool cut = header_at(bytes_.bytes(), at_) || (rest.size() < sizeof(format::record_header) &&
                                                      starts_alike(rest, format::record_magic));
  if (next < bytes_.size()) {
    skip_to(next, cut ? "a record runs past the end of the file" : "no record header");
  } else if (cut) {
    torn_ = torn_tail{at_, rest.size()};
    at_ = bytes_.size();
  } else {
    skip_to(next, "no record header");
  }
}

std::optional<record> recording_reader::next() {
  while (at_ < bytes_.size()) {
    const auto header = header_at(bytes_.bytes(), at_);
    if (!header || !fits(*header, at_, bytes_.size())) {
      read_tail();
      continue;
    }
    auto found = read_body(*header);
    if (!found) {
      skip_broken(*header, std::move(found).error().message);
      continue;
    }
    at_ += sizeof(*header) + header->body_bytes;
    if (found->kind == record_kind::index) {
      read_index(*found);
      continue;
    }
    ++records_;
    return std::move(*found);
  }
  return std::nullopt;
}

} // namespace millrace
