// SPDX-License-Identifier: Apache-2.0
#include "actors/assembler/journal_segment.hpp"

#include <cstring>
#include <map>
#include <utility>

#include "runtime/utf8.hpp"
#include "schema/limits.hpp"
#include "schema/recording.hpp"
#include "schema/wire_digest.hpp"

namespace millrace {

namespace format = recording_format;

namespace {

using wire::ArrivalKind;

ArrivalKind kind_of(const arrival &what) { return static_cast<ArrivalKind>(what.index()); }

/// What a person can do about a journal that cannot be used.
constexpr std::string_view way_out =
    "Restore it from a copy; or, if the source can be read again from its beginning, remove the "
    "folder";

/// A record of a segment, its body checked.
struct segment_record {
  record_kind kind = record_kind::frame;
  message parts;
  std::uint64_t end = 0; ///< where the next one stands
};

/// Errors: damaged (it may be the torn end), unsupported.
result<segment_record> record_at(const frame &file, std::uint64_t offset) {
  const auto header = header_at(file.bytes(), offset);
  if (!header)
    return fail(errc::damaged, "no record header");
  if (header->kind == 0 || header->kind > last_record_kind)
    return fail(errc::unsupported, "a record of kind {}; this program knows kinds up to {}",
                header->kind, last_record_kind);
  if (!fits(*header, offset, file.size()))
    return fail(errc::damaged, "a record runs past the end of the file");
  const auto kind = record_kind{header->kind};
  auto parts = parts_of(file, offset, *header, limits::parts, to_string(kind));
  if (!parts)
    return tl::unexpected(std::move(parts).error());
  return segment_record{kind, std::move(*parts), offset + sizeof(*header) + header->body_bytes};
}

result<journal_owner> owner_of(const message &parts) {
  const auto table = parse<wire::JournalOpen>(parts.front());
  if (!table)
    return tl::unexpected(table.error());
  if ((*table)->folder() == nullptr)
    return fail(errc::bad_format, "a journal of no folder");
  return journal_owner{std::string(text_of((*table)->run())), digest_of(*(*table)->folder()),
                       std::string(text_of((*table)->assembler()))};
}

result<journal_entry> entry_of(const wire::JournalArrival &note) {
  if (note.kind() > ArrivalKind::MAX)
    return fail(errc::unsupported, "an arrival of kind {}", static_cast<unsigned>(note.kind()));
  if (note.group() == nullptr)
    return fail(errc::bad_format, "an arrival of no group");
  journal_entry out;
  out.group = {note.group()->ordinal(), note.group()->source()};
  if (note.key() != nullptr)
    out.info = std::make_shared<group_info>(
        group_info{key_of(*note.key()), std::string(text_of(note.source())), note.size()});
  if (note.kind() != ArrivalKind::Size)
    out.name = safe_message{out.group, note.member(), note.attempt(), note.frame()};
  return out;
}

std::optional<record_kind> what_follows(ArrivalKind kind) {
  if (kind == ArrivalKind::Frame)
    return record_kind::frame;
  if (kind == ArrivalKind::Episode)
    return record_kind::sealed_episode;
  return std::nullopt;
}

/// Goes over the records of a segment whose file header is good.
class segment_scan {
public:
  segment_scan(const frame &file, const std::string &path, bool may_be_torn)
      : file_(file), path_(path), may_be_torn_(may_be_torn) {
    out_.bytes = sizeof(format::file_header);
  }

  result<segment_contents> run() && {
    while (out_.bytes < file_.size() && !out_.torn)
      MILLRACE_TRY(step());
    if (!out_.owner && !may_be_torn_)
      MILLRACE_TRY(refuse({errc::damaged, "it does not say whose journal it is"}));
    return std::move(out_);
  }

private:
  status step() {
    const auto first = record_at(file_, out_.bytes);
    if (!first)
      return end_at(out_.bytes, first.error());
    if (out_.owner)
      return take_note(*first);
    if (first->kind != record_kind::journal_open)
      return refuse({errc::damaged, "it does not say whose journal it is"});
    auto owner = owner_of(first->parts);
    if (!owner)
      return refuse(owner.error());
    out_.owner = std::move(*owner);
    out_.bytes = first->end;
    return {};
  }

  status take_note(const segment_record &first) {
    if (first.kind != record_kind::arrival)
      return refuse({errc::damaged, fmt::format("a {} record stands where an arrival should",
                                                to_string(first.kind))});
    const auto note = parse<wire::JournalArrival>(first.parts.front());
    if (!note)
      return refuse(note.error());
    auto entry = entry_of(**note);
    if (!entry)
      return refuse(entry.error());
    auto end = first.end;
    if (const auto wanted = what_follows((*note)->kind())) {
      const auto body = record_at(file_, end);
      if (!body)
        return end_at(end, body.error());
      if (body->kind != *wanted)
        return refuse({errc::damaged, fmt::format("an arrival of a {} and a {} record after it",
                                                  to_string(*wanted), to_string(body->kind))});
      end = body->end;
    }
    entry->offset = out_.bytes;
    entry->bytes = end - out_.bytes;
    if (entry->info)
      infos_[entry->group] = entry->info;
    entry->info = infos_[entry->group];
    if (!entry->info)
      return refuse({errc::damaged, "an arrival of a group of which nothing is known"});
    out_.entries.push_back(std::move(*entry));
    out_.bytes = end;
    return {};
  }

  /// What stands at `at` is no record: the end of the journal, if none follows and it may be one.
  status end_at(std::uint64_t at, const error &why) {
    if (why.code != errc::damaged)
      return refuse(why);
    const auto next = next_header_after(file_.bytes(), at + 1);
    if (next == file_.size() && may_be_torn_) {
      out_.torn = torn_tail{out_.bytes, file_.size() - out_.bytes};
      return {};
    }
    return refuse(why);
  }

  status refuse(const error &why) const {
    return fail(why.code == errc::unsupported ? errc::unsupported : errc::damaged,
                "'{}': offset {}: {}. {}", path_, out_.bytes, why.message, way_out);
  }

  const frame &file_;
  const std::string &path_;
  const bool may_be_torn_;
  std::map<group_ref, std::shared_ptr<const group_info>> infos_;
  segment_contents out_;
};

/// Answers whether it is whole: a file that ends within it was made and never written to.
result<bool> read_file_header(std::span<const std::byte> file, const std::string &path,
                              const std::string &assembler) {
  auto header = file_header_of(format::file_magic, assembler);
  if (file.size() < sizeof(header)) {
    if (!file.empty() && std::memcmp(file.data(), &header, file.size()) != 0)
      return fail(errc::damaged, "'{}' is cut off after {} bytes, within a damaged header. {}",
                  path, file.size(), way_out);
    return false;
  }
  if (!starts_alike(file, format::file_magic))
    return fail(errc::bad_format, "'{}' is not a segment of a journal. {}", path, way_out);
  std::memcpy(&header, file.data(), sizeof(header));
  if (const auto crc = crc_of(header); crc != header.crc)
    return fail(errc::damaged, "'{}': the file header has checksum {:08x}, expected {:08x}. {}",
                path, crc, header.crc, way_out);
  if (header.version != format::version || header.flags != 0)
    return fail(errc::unsupported,
                "'{}' has format version {}, flags {:#x}; this program knows version {}, flags 0: "
                "use the program that wrote it or a later one",
                path, header.version, header.flags, format::version);
  return true;
}

} // namespace

group_ref group_of(const arrival &what) noexcept {
  return std::visit([](const auto &in) { return in.group; }, what);
}

const std::shared_ptr<const group_info> &info_of(const arrival &what) noexcept {
  return std::visit(
      [](const auto &in) -> const auto & { return in.info; }, what);
}

std::optional<safe_message> name_of(const arrival &what) {
  if (const auto *in = std::get_if<frame_arrived>(&what))
    return safe_message{in->group, in->member, in->part.table().attempt(),
                        in->part.table().frame()};
  if (const auto *in = std::get_if<episode_arrived>(&what))
    return safe_message{in->group, in->member, in->episode.head().attempt()};
  if (const auto *in = std::get_if<episode_rejected>(&what))
    return safe_message{in->group, in->member, in->attempt};
  return std::nullopt;
}

message encode(const journal_owner &who) {
  flatbuffers::FlatBufferBuilder builder;
  const auto run = builder.CreateString(who.run);
  const auto assembler = builder.CreateString(who.assembler);
  const auto folder = digest_of(who.folder);
  return {finish_body<wire::JournalOpen>(
      builder, wire::CreateJournalOpen(builder, run, &folder, assembler))};
}

message encode_note(const arrival &what, bool with_info) {
  flatbuffers::FlatBufferBuilder builder;
  const auto &info = *info_of(what);
  flatbuffers::Offset<wire::GroupKey> key;
  flatbuffers::Offset<flatbuffers::String> source;
  if (with_info) {
    key = create_key(builder, info.key);
    source = builder.CreateString(info.source);
  }
  flatbuffers::Offset<flatbuffers::String> episode;
  flatbuffers::Offset<flatbuffers::String> reason;
  if (const auto *in = std::get_if<episode_rejected>(&what)) {
    episode = builder.CreateString(in->id);
    reason = builder.CreateString(utf8_prefix(in->reason, limits::text_bytes));
  }
  const auto ref = group_of(what);
  const wire::GroupPlace place(ref.ordinal, ref.source);
  const auto name = name_of(what).value_or(safe_message{ref});
  return {finish_body<wire::JournalArrival>(
      builder, wire::CreateJournalArrival(builder, kind_of(what), &place, key, source,
                                          with_info ? info.size : 0, name.member, name.attempt,
                                          name.frame, episode, reason))};
}

journal_body body_of(const arrival &what) {
  if (const auto *in = std::get_if<frame_arrived>(&what))
    return {static_cast<std::uint32_t>(record_kind::frame), in->part.parts()};
  if (const auto *in = std::get_if<episode_arrived>(&what))
    return {static_cast<std::uint32_t>(record_kind::sealed_episode), in->episode.parts()};
  return {};
}

result<segment_contents> read_segment(const frame &bytes, const std::string &path,
                                      const std::string &assembler, bool may_be_torn) {
  const auto whole = read_file_header(bytes.bytes(), path, assembler);
  if (!whole)
    return tl::unexpected(whole.error());
  if (!*whole && !may_be_torn)
    return fail(errc::damaged, "'{}' has {} bytes, and a later segment follows. {}", path,
                bytes.size(), way_out);
  if (!*whole) {
    segment_contents out;
    if (!bytes.empty())
      out.torn = torn_tail{0, bytes.size()};
    return out;
  }
  return segment_scan(bytes, path, may_be_torn).run();
}

namespace {

/// What the records of an entry say. Errors: damaged, or what parsing says.
result<arrival> arrival_of(const frame &bytes, const journal_entry &entry,
                           const std::shared_ptr<memory_meter> &meter) {
  const auto first = record_at(bytes, entry.offset);
  if (!first)
    return tl::unexpected(first.error());
  const auto note = parse<wire::JournalArrival>(first->parts.front(), meter);
  if (!note)
    return tl::unexpected(note.error());
  const auto &table = **note;
  if (table.kind() == ArrivalKind::Size)
    return group_sized{entry.group, entry.info};
  if (table.kind() == ArrivalKind::Rejected)
    return episode_rejected{entry.group,     entry.info,
                            table.member(),  std::string(text_of(table.episode())),
                            table.attempt(), std::string(text_of(table.reason()))};
  auto body = record_at(bytes, first->end);
  if (!body)
    return tl::unexpected(body.error());
  if (table.kind() == ArrivalKind::Frame) {
    auto part = episode_frame::parse(std::move(body->parts), meter);
    if (!part)
      return tl::unexpected(part.error());
    return frame_arrived{entry.group, entry.info, table.member(), std::move(*part)};
  }
  auto episode = sealed_episode::parse(std::move(body->parts), meter);
  if (!episode)
    return tl::unexpected(episode.error());
  return episode_arrived{entry.group, entry.info, table.member(), std::move(*episode)};
}

} // namespace

result<arrival> read_entry(const frame &bytes, const std::string &path, const journal_entry &entry,
                           const std::shared_ptr<memory_meter> &meter) {
  auto out = arrival_of(bytes, entry, meter);
  if (!out)
    return fail(errc::damaged, "'{}': offset {}: {}. {}", path, entry.offset, out.error().message,
                way_out);
  return out;
}

} // namespace millrace
