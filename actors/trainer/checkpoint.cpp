// SPDX-License-Identifier: Apache-2.0
#include "actors/trainer/checkpoint.hpp"

#include <array>
#include <bit>
#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include "runtime/crash_point.hpp"
#include "runtime/digest.hpp"
#include "runtime/mapping.hpp"
#include "runtime/posix_file.hpp"

namespace millrace {

namespace {

constexpr std::array<char, 8> magic{'M', 'R', 'C', 'K', 'P', 'T', '\r', '\n'};
constexpr std::uint32_t newest_version = 2; // since 2 with the id of the planner's folder

/// The first bytes of a file, little-endian, without padding. The names, the planner's folder and
/// the state follow, then the digest of all that.
struct file_header {
  std::array<char, 8> magic;
  std::uint32_t version;
  std::uint32_t rank;
  std::uint32_t ranks;
  std::uint32_t run_bytes;
  std::uint32_t policy_bytes;
  std::uint32_t planner_bytes; ///< 0 in version 1, else 16
  std::uint64_t step;
  std::uint64_t state_bytes;
};
static_assert(sizeof(file_header) == 48 && std::is_trivially_copyable_v<file_header>);
static_assert(std::endian::native == std::endian::little);

std::string file_name(const checkpoint_owner &owner) {
  return fmt::format("rank-{}.ckpt", owner.rank);
}

std::string files_name(const checkpoint_owner &owner) { return fmt::format("rank-{}", owner.rank); }

/// The step of a folder's name.
std::optional<std::uint64_t> step_in(std::string_view name) {
  constexpr std::string_view begin = "step-";
  std::uint64_t step = 0;
  const auto *last = name.data() + name.size();
  if (!name.starts_with(begin) ||
      std::from_chars(name.data() + begin.size(), last, step).ptr != last)
    return std::nullopt;
  return step;
}

status make_folder(const checkpoint_owner &owner, const std::filesystem::path &folder) {
  std::error_code problem;
  const bool is_new = std::filesystem::create_directories(folder, problem);
  if (problem)
    return fail(problem == std::errc::no_space_on_device ? errc::no_space : errc::io,
                "cannot make folder '{}': {}", folder.string(), problem.message());
  if (!is_new || owner.sync == file_sync::off)
    return {};
  for (const auto &made : {folder, owner.folder})
    if (const int number = sync_folder_of(made); number != 0)
      return fail(errc::io, "cannot sync the name of '{}': {}", made.string(), reason_of(number));
  return {};
}

/// Checks of a file as such, whoever it is of. Gives its header.
result<file_header> check_file(std::span<const std::byte> bytes) {
  file_header header{};
  if (bytes.size() < sizeof(header) + sizeof(digest128))
    return fail(errc::damaged, "{} bytes are too few for a checkpoint", bytes.size());
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (header.magic != magic)
    return fail(errc::damaged, "it does not begin as a checkpoint does");
  if (header.version > newest_version)
    return fail(errc::unsupported, "its format is version {}; this program reads {}",
                header.version, newest_version);
  const auto inner = bytes.first(bytes.size() - sizeof(digest128));
  digest_writer writer;
  writer.add(inner);
  const auto digest = writer.finish();
  if (std::memcmp(digest.bytes.data(), inner.data() + inner.size(), sizeof(digest)) != 0)
    return fail(errc::damaged, "its {} bytes do not fit their checksum", bytes.size());
  if (header.planner_bytes != (header.version == 1 ? 0 : sizeof(digest128)))
    return fail(errc::damaged, "the id of its planner's folder has {} bytes", header.planner_bytes);
  const auto names = std::uint64_t{header.run_bytes} + header.policy_bytes + header.planner_bytes;
  if (inner.size() - sizeof(header) < names ||
      inner.size() - sizeof(header) - names != header.state_bytes)
    return fail(errc::damaged, "its lengths do not add up");
  return header;
}

template <class T> status same(std::string_view what, const T &found, const T &wanted) {
  if (found == wanted)
    return {};
  return fail(errc::conflict, "it is of {} {}, not of {}", what, found, wanted);
}

result<frame> check(const checkpoint_owner &owner, std::uint64_t step, const frame &file) {
  const auto header = check_file(file.bytes());
  if (!header)
    return tl::unexpected(header.error());
  const std::string_view text(reinterpret_cast<const char *>(file.data()), file.size());
  const auto run = text.substr(sizeof(*header), header->run_bytes);
  const auto policy = text.substr(sizeof(*header) + header->run_bytes, header->policy_bytes);
  MILLRACE_TRY(same<std::string_view>("run", run, owner.run));
  MILLRACE_TRY(same<std::string_view>("policy", policy, owner.policy));
  MILLRACE_TRY(same("rank", header->rank, owner.rank));
  if (header->ranks != owner.ranks)
    return fail(errc::conflict, "it is of a job of {} ranks, not of {}", header->ranks,
                owner.ranks);
  MILLRACE_TRY(same("step", header->step, step));
  const auto names = sizeof(*header) + run.size() + policy.size();
  if (digest128 planner; header->planner_bytes != 0) {
    std::memcpy(planner.bytes.data(), file.data() + names, planner.bytes.size());
    MILLRACE_TRY(same("the planner with folder", planner.hex(), owner.planner.hex()));
  }
  return file.sub(names + header->planner_bytes, header->state_bytes);
}

/// One folder less, with all that is in it; fine if it is gone already.
status take_away_all(const std::filesystem::path &path) {
  std::error_code problem;
  std::filesystem::remove_all(path, problem);
  if (problem)
    return fail(errc::io, "cannot remove '{}': {}", path.string(), problem.message());
  return {};
}

/// One file or folder less. A folder that holds something, and what is gone already, is fine.
status take_away(const std::filesystem::path &path) {
  std::error_code problem;
  std::filesystem::remove(path, problem);
  if (problem && problem != std::errc::directory_not_empty)
    return fail(errc::io, "cannot remove '{}': {}", path.string(), problem.message());
  return {};
}

/// What is in a folder; nothing of one that cannot be listed.
std::vector<std::filesystem::path> entries_of(const std::filesystem::path &folder) {
  std::vector<std::filesystem::path> out;
  std::error_code problem;
  for (std::filesystem::directory_iterator at(folder, problem), end; !problem && at != end;
       at.increment(problem))
    out.push_back(at->path());
  return out;
}

status remove_own(const checkpoint_owner &owner, const std::filesystem::path &folder) {
  const auto name = file_name(owner);
  status first;
  for (const auto &path : entries_of(folder)) {
    const auto found = path.filename().string();
    status gone;
    if (found == files_name(owner))
      gone = take_away_all(path);
    else if (found == name || found.starts_with(name + ".partial-"))
      gone = take_away(path);
    if (!gone && first)
      first = std::move(gone);
  }
  if (auto gone = take_away(folder); !gone && first)
    first = std::move(gone);
  return first;
}

} // namespace

std::filesystem::path checkpoint_path(const checkpoint_owner &owner, std::uint64_t step) {
  return owner.folder / fmt::format("step-{:06}", step) / file_name(owner);
}

std::filesystem::path checkpoint_folder(const checkpoint_owner &owner, std::uint64_t step) {
  return owner.folder / fmt::format("step-{:06}", step) / files_name(owner);
}

status save_checkpoint(const checkpoint_owner &owner, std::uint64_t step,
                       std::span<const std::byte> state) {
  const auto path = checkpoint_path(owner, step);
  MILLRACE_TRY(make_folder(owner, path.parent_path()));
  auto file = output_file::create(path);
  if (!file)
    return tl::unexpected(std::move(file).error());
  const file_header header{magic,
                           newest_version,
                           owner.rank,
                           owner.ranks,
                           static_cast<std::uint32_t>(owner.run.size()),
                           static_cast<std::uint32_t>(owner.policy.size()),
                           static_cast<std::uint32_t>(owner.planner.bytes.size()),
                           step,
                           state.size()};
  digest_writer digest;
  for (const std::span<const std::byte> part : std::initializer_list<std::span<const std::byte>>{
           std::as_bytes(std::span(&header, 1)), std::as_bytes(std::span(owner.run)),
           std::as_bytes(std::span(owner.policy)), std::as_bytes(std::span(owner.planner.bytes)),
           state}) {
    digest.add(part);
    MILLRACE_TRY(file->write(part));
  }
  const auto sum = digest.finish();
  MILLRACE_TRY(file->write(std::as_bytes(std::span(sum.bytes))));
  crash_point("trainer.checkpoint.written");
  return file->finish(owner.sync);
}

result<frame> read_checkpoint(const checkpoint_owner &owner, std::uint64_t step) {
  const auto path = checkpoint_path(owner, step);
  const auto file = map_file(path);
  if (!file)
    return tl::unexpected(file.error());
  auto state = check(owner, step, *file);
  if (!state)
    return with_context(std::move(state).error(), fmt::format("checkpoint '{}'", path.string()));
  return state;
}

status remove_checkpoints_below(const checkpoint_owner &owner, std::uint64_t step) {
  status first;
  for (const auto &path : entries_of(owner.folder)) {
    const auto of = step_in(path.filename().string());
    if (!of || *of >= step)
      continue;
    if (auto gone = remove_own(owner, path); !gone && first)
      first = std::move(gone);
  }
  return first;
}

} // namespace millrace
