// SPDX-License-Identifier: Apache-2.0
#include "schema/planner_log.hpp"

#include <cstring>
#include <span>
#include <string_view>

#include "runtime/crash_point.hpp"
#include "runtime/log.hpp"
#include "runtime/mapping.hpp"
#include "schema/limits.hpp"

namespace millrace {

namespace format = recording_format;

namespace {

constexpr std::uint32_t version = 1;

/// The header of every log is the same, so that the beginning of one can be told.
format::file_header header_of_file() {
  return file_header_of(planner_log_magic, "the planner's log");
}

template <class T> std::span<const std::byte> bytes_of(const T &value) {
  return std::as_bytes(std::span(&value, 1));
}

/// Answers whether it is whole: a file that ends within it was made and never written to.
result<bool> read_file_header(std::span<const std::byte> file, const std::string &name) {
  if (!file.empty() && !starts_alike(file, planner_log_magic))
    return fail(errc::bad_format, "'{}' is not a planner's log", name);
  auto header = header_of_file();
  if (file.size() < sizeof(header)) {
    if (!file.empty() && std::memcmp(file.data(), &header, file.size()) != 0)
      return fail(errc::damaged, "'{}' is cut off after {} bytes, within a damaged header", name,
                  file.size());
    return false;
  }
  std::memcpy(&header, file.data(), sizeof(header));
  if (const auto crc = crc_of(header); crc != header.crc)
    return fail(errc::damaged, "'{}': the file header has checksum {:08x}, expected {:08x}", name,
                crc, header.crc);
  if (header.version != version || header.flags != 0)
    return fail(errc::unsupported,
                "'{}' has format version {}, flags {:#x}; this program knows version {}, flags 0",
                name, header.version, header.flags, version);
  return true;
}

/// The parts of the record at `offset`. Errors: damaged, unsupported.
result<message> record_at(const frame &file, std::uint64_t offset) {
  const auto header = header_at(file.bytes(), offset);
  if (!header)
    return fail(errc::damaged, "no record header");
  if (header->kind != planner_log_record)
    return fail(errc::unsupported, "a record of kind {}; this program knows kind {}", header->kind,
                planner_log_record);
  if (!fits(*header, offset, file.size()))
    return fail(errc::damaged, "a record runs past the end of the file");
  return parts_of(file, offset, *header, limits::log_parts, "log");
}

/// Goes over the records of a file whose header is good.
class log_scan {
public:
  log_scan(const frame &file, const std::string &name) : file_(file), name_(name) {
    out_.bytes = sizeof(format::file_header);
  }

  result<log_extent> run(const log_visitor &each) {
    while (out_.bytes < file_.size() && !out_.torn)
      MILLRACE_TRY(step(each));
    return out_;
  }

private:
  status step(const log_visitor &each) {
    const auto at = out_.bytes;
    const auto parts = record_at(file_, at);
    if (!parts)
      return parts.error().code == errc::damaged ? end_at_damage(parts.error())
                                                 : refuse(parts.error());
    auto what = decode_log_record(*parts);
    if (!what)
      return refuse(what.error());
    if (const auto *start = std::get_if<log_open>(&*what); start != nullptr)
      program_ = start->program;
    MILLRACE_TRY(each(at, std::move(*what)));
    ++out_.records;
    const auto header = header_at(file_.bytes(), at);
    out_.bytes += sizeof(*header) + header->body_bytes;
    return {};
  }

  /// What stands here is no record: the end of the log, if none follows.
  status end_at_damage(const error &why) {
    const auto at = out_.bytes;
    const auto next = next_header_after(file_.bytes(), at + 1);
    if (next == file_.size()) {
      out_.torn = torn_tail{at, file_.size() - at};
      return {};
    }
    return fail(errc::damaged,
                "'{}': offset {}: {}, and a record follows at offset {}: it is damaged, not just "
                "unfinished. Restore it from a copy, or begin anew in another state folder",
                name_, at, why.message, next);
  }

  /// A record whose checksums fit is not as this program writes them.
  status refuse(const error &why) {
    if (why.code != errc::unsupported)
      return fail(errc::damaged, "'{}': offset {}: {}", name_, out_.bytes, why.message);
    return fail(errc::unsupported,
                "'{}': offset {}: {}. The log was last opened by version '{}': use that or a later "
                "one",
                name_, out_.bytes, why.message, program_);
  }

  const frame &file_;
  const std::string &name_;
  std::string program_;
  log_extent out_;
};

} // namespace

bool is_planner_log(const std::filesystem::path &path) {
  const auto bytes = map_file(path);
  return bytes && bytes->size() >= planner_log_magic.size() &&
         starts_alike(bytes->bytes(), planner_log_magic);
}

result<log_extent> read_planner_log(const frame &bytes, const std::string &name,
                                    const log_visitor &each) {
  const auto whole = read_file_header(bytes.bytes(), name);
  if (!whole)
    return tl::unexpected(whole.error());
  if (*whole)
    return log_scan(bytes, name).run(each);
  log_extent out;
  if (!bytes.empty())
    out.torn = torn_tail{0, bytes.size()};
  return out;
}

result<log_extent> read_planner_log(const std::filesystem::path &path, const log_visitor &each) {
  const auto bytes = map_file(path);
  if (!bytes)
    return tl::unexpected(bytes.error());
  return read_planner_log(*bytes, path.string(), each);
}

result<planner_log> planner_log::open(const std::filesystem::path &path, options how,
                                      const log_visitor &each) {
  auto file = append_file::open(path, {how.sync});
  if (!file)
    return tl::unexpected(std::move(file).error());
  const auto bytes = file->map();
  if (!bytes)
    return tl::unexpected(bytes.error());
  const auto extent = read_planner_log(*bytes, path.string(), each);
  if (!extent)
    return tl::unexpected(extent.error());
  planner_log out(std::move(*file));
  MILLRACE_TRY(out.cut(*extent));
  if (extent->bytes == 0)
    MILLRACE_TRY(out.create());
  return out;
}

/// Precondition: nobody uses frames of what is cut off.
status planner_log::cut(const log_extent &good) {
  cut_off_ = good.torn;
  if (!good.torn)
    return {};
  MILLRACE_TRY(file_.truncate(good.bytes));
  log::warn("'{}': the last {} bytes, from offset {} on, are no whole record and were cut off",
            path().string(), good.torn->bytes, good.torn->offset);
  crash_point("log.cut.done");
  return file_.sync();
}

status planner_log::create() {
  const auto header = header_of_file();
  const std::array pieces{bytes_of(header)};
  MILLRACE_TRY(file_.append(pieces));
  crash_point("log.create.written");
  return file_.sync();
}

status planner_log::append(const log_record &what) {
  const auto parts = encode(what);
  if (!parts)
    return tl::unexpected(parts.error());
  const framed_record framed(planner_log_record, *parts);
  const auto before = file_.size();
  const std::array header{framed.header()};
  crash_point("log.append.begin");
  MILLRACE_TRY(file_.append(header));
  crash_point("log.append.half");
  if (auto done = file_.append(framed.body()); !done) {
    MILLRACE_TRY(file_.truncate(before));
    return done;
  }
  crash_point("log.append.written");
  return {};
}

status planner_log::sync() {
  MILLRACE_TRY(file_.sync());
  crash_point("log.sync.done");
  return {};
}

} // namespace millrace
