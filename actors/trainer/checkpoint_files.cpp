// SPDX-License-Identifier: Apache-2.0
#include "actors/trainer/checkpoint_files.hpp"

#include <algorithm>
#include <cerrno>
#include <string>
#include <string_view>
#include <system_error>

#include <fcntl.h>
#include <unistd.h>

#include "runtime/digest.hpp"
#include "runtime/json.hpp"
#include "runtime/json_out.hpp"
#include "runtime/mapping.hpp"
#include "runtime/posix_file.hpp"

namespace millrace {

namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t newest_version = 1;

status failed(const fs::path &path, std::string_view what, const std::error_code &why) {
  return fail(why == std::errc::no_space_on_device ? errc::no_space : errc::io,
              "cannot {} '{}': {}", what, path.string(), why.message());
}

/// fsync of a file or a folder.
status sync_path(const fs::path &path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  int number = fd < 0 ? errno : 0;
  if (fd >= 0) {
    number = ::fsync(fd) == 0 ? 0 : errno;
    ::close(fd);
  }
  if (number == 0 || number == EINVAL) // a file system without fsync for folders
    return {};
  return fail(number == ENOSPC ? errc::no_space : errc::io, "cannot sync '{}': {}", path.string(),
              reason_of(number));
}

/// The files in a folder, by name relative to it, ascending. Errors: io, bad_value.
result<std::vector<std::string>> files_in(const fs::path &folder) {
  std::vector<std::string> out;
  std::error_code why;
  for (fs::recursive_directory_iterator at(folder, why), end; !why && at != end;
       at.increment(why)) {
    const auto kind = at->symlink_status(why).type();
    if (kind == fs::file_type::directory)
      continue;
    if (kind != fs::file_type::regular)
      return fail(errc::bad_value, "'{}' in a checkpoint is neither file nor folder",
                  at->path().string());
    out.push_back(at->path().lexically_relative(folder).generic_string());
  }
  if (why)
    return tl::unexpected(failed(folder, "list", why).error());
  std::ranges::sort(out);
  return out;
}

status sync_all(const fs::path &folder, const std::vector<std::string> &files) {
  for (const auto &name : files)
    MILLRACE_TRY(sync_path(folder / name));
  std::error_code why;
  for (fs::recursive_directory_iterator at(folder, why), end; !why && at != end; at.increment(why))
    if (at->is_directory(why))
      MILLRACE_TRY(sync_path(at->path()));
  if (why)
    return failed(folder, "list", why);
  MILLRACE_TRY(sync_path(folder));
  return sync_path(folder.parent_path());
}

std::string digest_of(const frame &file) {
  digest_writer writer;
  writer.add(file.bytes());
  return writer.finish().hex();
}

status check_file(const fs::path &path, std::uint64_t bytes, std::string_view digest) {
  const auto file = map_file(path);
  if (!file)
    return fail(errc::damaged, "{}", file.error().message);
  if (file->size() != bytes)
    return fail(errc::damaged, "'{}' has {} bytes; it was saved with {}", path.string(),
                file->size(), bytes);
  if (const auto found = digest_of(*file); found != digest)
    return fail(errc::damaged, "the {} bytes of '{}' do not fit their checksum", bytes,
                path.string());
  return {};
}

} // namespace

status make_empty_folder(const fs::path &folder) {
  std::error_code why;
  fs::remove_all(folder, why);
  if (why)
    return failed(folder, "remove", why);
  fs::create_directories(folder, why);
  return why ? failed(folder, "make folder", why) : status();
}

result<std::vector<std::byte>> seal_folder(const fs::path &folder, file_sync sync) {
  const auto files = files_in(folder);
  if (!files)
    return tl::unexpected(files.error());
  if (sync == file_sync::on)
    MILLRACE_TRY(sync_all(folder, *files));
  json::tree out;
  out["version"] = newest_version;
  auto &list = out["files"] = json::tree::array();
  for (const auto &name : *files) {
    const auto file = map_file(folder / name);
    if (!file)
      return tl::unexpected(file.error());
    list.push_back({{"name", name}, {"bytes", file->size()}, {"xxh3_128", digest_of(*file)}});
  }
  const auto text = json::dump(out);
  const auto bytes = std::as_bytes(std::span(text));
  return std::vector(bytes.begin(), bytes.end());
}

status check_folder(const fs::path &folder, std::span<const std::byte> sealed) {
  json::document document;
  const auto root = document.parse({reinterpret_cast<const char *>(sealed.data()), sealed.size()});
  if (!root)
    return tl::unexpected(root.error());
  const auto version = root->get<std::uint64_t>("version");
  if (!version)
    return tl::unexpected(version.error());
  if (*version != newest_version)
    return fail(errc::unsupported, "its list of files is of version {}; this program reads {}",
                *version, newest_version);
  const auto list = root->get<json::value>("files");
  if (!list)
    return tl::unexpected(list.error());
  const auto files = list->items();
  if (!files)
    return tl::unexpected(files.error());
  for (const auto &one : *files) {
    const auto name = one.get<std::string>("name");
    const auto bytes = one.get<std::uint64_t>("bytes");
    const auto digest = one.get<std::string>("xxh3_128");
    if (!name || !bytes || !digest)
      return fail(errc::bad_format, "a file in its list has no name, bytes and xxh3_128");
    MILLRACE_TRY(check_file(folder / *name, *bytes, *digest));
  }
  return {};
}

} // namespace millrace
