// SPDX-License-Identifier: Apache-2.0
#include "actors/assembler/journal.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <system_error>
#include <utility>

#include "runtime/crash_point.hpp"
#include "runtime/log.hpp"
#include "runtime/mapping.hpp"
#include "runtime/posix_file.hpp"

namespace millrace {

namespace format = recording_format;

namespace {

constexpr std::string_view prefix = "segment-";
constexpr std::string_view ending = ".mrec";

/// Of "segment-000012.mrec"; nothing for other names.
std::optional<std::uint64_t> number_of(const std::string &name) {
  if (!name.starts_with(prefix) || !name.ends_with(ending))
    return std::nullopt;
  const auto digits = name.substr(prefix.size(), name.size() - prefix.size() - ending.size());
  std::uint64_t number = 0;
  const auto *end = digits.data() + digits.size();
  const auto [at, problem] = std::from_chars(digits.data(), end, number);
  if (problem != std::errc() || at != end)
    return std::nullopt;
  return number;
}

/// Makes a folder and those above it, so that they outlive the machine's power.
status make_folder(const std::filesystem::path &folder, bool sync) {
  std::error_code problem;
  if (std::filesystem::is_directory(folder, problem))
    return {};
  if (!std::filesystem::create_directories(folder, problem) && problem)
    return fail(problem == std::errc::no_space_on_device ? errc::no_space : errc::io,
                "cannot make '{}': {}", folder.string(), problem.message());
  for (const auto &one : {folder, folder.parent_path()})
    if (const int number = sync ? sync_folder_of(one) : 0; number != 0)
      return fail(errc::io, "cannot sync the folder of '{}': {}", one.string(), reason_of(number));
  return {};
}

} // namespace

std::filesystem::path journal::path_of(std::uint64_t number) const {
  return options_.folder / fmt::format("{}{:06}{}", prefix, number, ending);
}

result<std::unique_ptr<journal>> journal::open(journal_options how) {
  MILLRACE_TRY(make_folder(how.folder, how.sync));
  auto lock = append_file::open(how.folder / "lock", {.sync = false});
  if (!lock)
    return tl::unexpected(std::move(lock).error());
  std::unique_ptr<journal> out(new journal(std::move(how), std::move(*lock)));
  MILLRACE_TRY(out->load());
  return out;
}

status journal::load() {
  std::set<std::uint64_t> numbers;
  std::error_code problem;
  for (const auto &each : std::filesystem::directory_iterator(options_.folder, problem))
    if (const auto number = number_of(each.path().filename().string()))
      numbers.insert(*number);
  if (problem)
    return fail(errc::io, "cannot list '{}': {}", options_.folder.string(), problem.message());
  for (const auto number : numbers) {
    MILLRACE_TRY(load_segment(number, number == *numbers.rbegin()));
    next_ = segments_.contains(number) ? number + 1 : number;
  }
  return {};
}

status journal::load_segment(std::uint64_t number, bool last) {
  const auto path = path_of(number);
  const auto mapped = map_file(path);
  if (!mapped)
    return tl::unexpected(mapped.error());
  auto found = read_segment(*mapped, path.string(), options_.assembler, last);
  if (!found)
    return tl::unexpected(std::move(found).error());
  if (found->owner)
    MILLRACE_TRY(take_owner(*found->owner, path));
  if (last)
    MILLRACE_TRY(cut(number, *found));
  if (!found->owner)
    return {}; // it was just made; the next segment takes its place
  auto &one = segments_[number];
  one.path = path;
  one.bytes = found->bytes;
  one.mapped = mapped->sub(0, found->bytes);
  for (auto &entry : found->entries) {
    one.groups.insert(entry.group);
    groups_[entry.group].push_back({number, std::move(entry)});
  }
  return {};
}

status journal::take_owner(const journal_owner &who, const std::filesystem::path &path) {
  if (who.run != options_.run || who.assembler != options_.assembler)
    return fail(errc::bad_argument,
                "'{}' is the journal of {} in run '{}', this is {} in run '{}': name another state "
                "folder, or remove this one",
                path.string(), who.assembler, who.run, options_.assembler, options_.run);
  if (owner_ && *owner_ != who)
    return fail(errc::damaged, "'{}' is of another run than the segment before it", path.string());
  owner_ = who;
  return {};
}

/// The last segment goes on growing. One that says nothing yet begins anew.
status journal::cut(std::uint64_t number, const segment_contents &found) {
  auto file = append_file::open(path_of(number), {.sync = options_.sync});
  if (!file)
    return tl::unexpected(std::move(file).error());
  const auto good = found.owner ? found.bytes : 0;
  if (file->size() > good) {
    if (found.torn)
      log::warn("'{}': the last {} bytes, from offset {} on, are no whole message and were cut off",
                path_of(number).string(), found.torn->bytes, found.torn->offset);
    MILLRACE_TRY(file->truncate(good));
    crash_point("assembler.journal.cut");
    MILLRACE_TRY(file->sync());
  }
  if (found.owner)
    last_.emplace(std::move(*file));
  return {};
}

status journal::begin(const digest128 &folder) {
  if (owner_ && owner_->folder != folder)
    return fail(errc::conflict,
                "'{}' is the journal of a run of another state folder ({}, the planner's is {}): "
                "name another state folder for this process, or remove it",
                options_.folder.string(), owner_->folder.hex(), folder.hex());
  folder_ = folder;
  return {};
}

status journal::write_record(std::uint32_t kind, const message &parts) {
  const framed_record framed(kind, parts);
  std::vector<std::span<const std::byte>> pieces{framed.header()};
  pieces.insert(pieces.end(), framed.body().begin(), framed.body().end());
  return last_->append(pieces);
}

/// A new segment, with its header and its first record. What was begun without room is tried again.
status journal::open_segment() {
  const auto number = next_;
  auto file = append_file::open(path_of(number), {.sync = options_.sync});
  if (!file)
    return tl::unexpected(std::move(file).error());
  MILLRACE_ASSERT(file->size() == 0, "'{}' has {} bytes", file->path().string(), file->size());
  const auto header = file_header_of(format::file_magic, options_.assembler);
  const journal_owner owner{options_.run, folder_.value(), options_.assembler};
  const auto parts = encode(owner);
  const framed_record framed(static_cast<std::uint32_t>(record_kind::journal_open), parts);
  std::vector<std::span<const std::byte>> pieces{std::as_bytes(std::span(&header, 1)),
                                                 framed.header()};
  pieces.insert(pieces.end(), framed.body().begin(), framed.body().end());
  MILLRACE_TRY(file->append(pieces));
  owner_ = owner;
  auto &one = segments_[number];
  one.path = path_of(number);
  one.bytes = file->size();
  ++next_;
  last_.emplace(std::move(*file));
  crash_point("assembler.journal.begun");
  return {};
}

/// Makes last_ a segment that can take a message.
status journal::make_room() {
  if (last_ && last_->size() < options_.segment_bytes)
    return {};
  if (last_) {
    MILLRACE_TRY(last_->sync()); // only the last one may be torn
    crash_point("assembler.journal.rolled");
  }
  last_.reset();
  return open_segment();
}

status journal::append(const arrival &what) {
  MILLRACE_ASSERT(folder_, "nobody has said whose journal '{}' is", options_.folder.string());
  MILLRACE_TRY(make_room());
  const auto ref = group_of(what);
  const auto &info = info_of(what);
  auto &[number, where] = *segments_.rbegin();
  const auto known = groups_.find(ref);
  const auto *said = known == groups_.end() ? nullptr : known->second.back().entry.info.get();
  const bool with_info = !where.groups.contains(ref) || said->size != info->size;
  const auto before = last_->size();
  crash_point("assembler.journal.append");
  MILLRACE_TRY(
      write_record(static_cast<std::uint32_t>(record_kind::arrival), encode_note(what, with_info)));
  crash_point("assembler.journal.half");
  if (const auto body = body_of(what); !body.parts.empty())
    if (auto done = write_record(body.kind, body.parts); !done) {
      MILLRACE_TRY(last_->truncate(before));
      return done;
    }
  crash_point("assembler.journal.written");
  where.bytes = last_->size();
  where.groups.insert(ref);
  groups_[ref].push_back({number, {before, where.bytes - before, ref, info, name_of(what)}});
  return {};
}

status journal::sync() {
  if (!last_)
    return {};
  MILLRACE_TRY(last_->sync());
  crash_point("assembler.journal.synced");
  return {};
}

bool journal::has(const safe_message &name) const {
  const auto found = groups_.find(name.group);
  return found != groups_.end() && std::ranges::any_of(found->second, [&](const auto &one) {
           return one.entry.name == name;
         });
}

std::vector<group_ref> journal::groups() const {
  std::vector<group_ref> out;
  for (const auto &[ref, entries] : groups_)
    out.push_back(ref);
  return out;
}

std::uint64_t journal::bytes() const noexcept {
  std::uint64_t sum = 0;
  for (const auto &[number, one] : segments_)
    sum += one.bytes;
  return sum;
}

/// At least the first `end` bytes of a segment.
result<frame> journal::bytes_of(std::uint64_t number, std::uint64_t end) {
  auto &one = segments_.at(number);
  if (one.mapped.size() < end) {
    auto mapped = map_file(one.path);
    if (!mapped)
      return tl::unexpected(std::move(mapped).error());
    one.mapped = mapped->sub(0, std::min<std::uint64_t>(mapped->size(), one.bytes));
  }
  if (one.mapped.size() < end)
    return fail(errc::damaged, "'{}' has {} bytes, {} were written", one.path.string(),
                one.mapped.size(), one.bytes);
  return one.mapped;
}

result<std::vector<arrival>> journal::read(group_ref ref,
                                           const std::shared_ptr<memory_meter> &meter) {
  std::vector<arrival> out;
  const auto found = groups_.find(ref);
  if (found == groups_.end())
    return out;
  for (const auto &[number, entry] : found->second) {
    const auto bytes = bytes_of(number, entry.offset + entry.bytes);
    if (!bytes)
      return tl::unexpected(bytes.error());
    auto one = read_entry(*bytes, segments_.at(number).path.string(), entry, meter);
    if (!one)
      return tl::unexpected(std::move(one).error());
    out.push_back(std::move(*one));
  }
  return out;
}

void journal::forget(group_ref ref) {
  const auto node = groups_.extract(ref);
  if (node.empty())
    return;
  std::set<std::uint64_t> numbers;
  for (const auto &one : node.mapped())
    numbers.insert(one.segment);
  for (const auto number : numbers)
    if (auto &one = segments_.at(number); one.groups.erase(ref) > 0 && one.groups.empty())
      remove(number);
}

/// Nothing in it is needed. If it cannot be removed, it is read at the next start and removed then.
void journal::remove(std::uint64_t number) {
  const auto node = segments_.extract(number);
  if (last_ && last_->path() == node.mapped().path)
    last_.reset();
  crash_point("assembler.journal.remove");
  std::error_code problem;
  std::filesystem::remove(node.mapped().path, problem);
  if (problem)
    log::warn("cannot remove '{}': {}", node.mapped().path.string(), problem.message());
  crash_point("assembler.journal.removed");
}

} // namespace millrace
