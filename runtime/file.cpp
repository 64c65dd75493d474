// SPDX-License-Identifier: Apache-2.0
#include "runtime/file.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace millrace {

namespace {

std::string reason() { return std::strerror(errno); }

/// A file descriptor, closed with its owner.
class descriptor {
public:
  explicit descriptor(int fd) : fd_(fd) {}
  descriptor(const descriptor &) = delete;
  descriptor &operator=(const descriptor &) = delete;
  ~descriptor() { close(); }

  bool ok() const { return fd_ >= 0; }
  int get() const { return fd_; }
  int close() { return fd_ < 0 ? 0 : ::close(std::exchange(fd_, -1)); }

private:
  int fd_;
};

status write_all(int fd, std::span<const std::byte> bytes, const std::string &name) {
  while (!bytes.empty()) {
    const auto written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR)
      continue;
    if (written < 0)
      return fail(errc::io, "{}: cannot write: {}", name, reason());
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return {};
}

status sync_folder(const std::filesystem::path &path) {
  auto folder = path.parent_path();
  if (folder.empty())
    folder = ".";
  descriptor file(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // Some file systems cannot sync a folder; the bytes are there all the same.
  if (file.ok() && ::fsync(file.get()) != 0 && errno != EINVAL && errno != ENOTSUP)
    return fail(errc::io, "{}: cannot sync: {}", folder.string(), reason());
  return {};
}

status fill(descriptor &file, const std::string &temporary, const std::filesystem::path &path,
            std::span<const std::byte> bytes) {
  MILLRACE_TRY(write_all(file.get(), bytes, path.string()));
  if (::fchmod(file.get(), 0644) != 0 || ::fsync(file.get()) != 0 || file.close() != 0)
    return fail(errc::io, "{}: cannot write: {}", path.string(), reason());
  if (::rename(temporary.c_str(), path.c_str()) != 0)
    return fail(errc::io, "{}: cannot put it in place: {}", path.string(), reason());
  return {};
}

} // namespace

status write_file_atomically(const std::filesystem::path &path, std::span<const std::byte> bytes) {
  auto temporary = path.string() + ".tmp-XXXXXX";
  descriptor file(::mkostemp(temporary.data(), O_CLOEXEC));
  if (!file.ok())
    return fail(errc::io, "{}: cannot make a file there: {}", path.string(), reason());
  if (auto done = fill(file, temporary, path, bytes); !done) {
    ::unlink(temporary.c_str());
    return done;
  }
  return sync_folder(path);
}

status write_file_atomically(const std::filesystem::path &path, std::string_view text) {
  return write_file_atomically(path, std::as_bytes(std::span(text.data(), text.size())));
}

result<std::string> read_file(const std::filesystem::path &path, std::size_t most) {
  descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.ok())
    return fail(errno == ENOENT ? errc::not_found : errc::io, "{}: cannot open: {}", path.string(),
                reason());
  struct stat about = {};
  if (::fstat(file.get(), &about) != 0)
    return fail(errc::io, "{}: cannot read: {}", path.string(), reason());
  if (S_ISDIR(about.st_mode))
    return fail(errc::bad_argument, "{}: is a directory, not a file", path.string());
  std::string out;
  constexpr std::size_t step = std::size_t{1} << 20;
  for (;;) {
    const auto size = out.size();
    out.resize(size + step);
    const auto got = ::read(file.get(), out.data() + size, step);
    if (got < 0 && errno != EINTR)
      return fail(errc::io, "{}: cannot read: {}", path.string(), reason());
    out.resize(size + static_cast<std::size_t>(got < 0 ? 0 : got));
    if (got == 0)
      return out;
    if (out.size() > most)
      return fail(errc::too_large, "{}: over {} bytes", path.string(), most);
  }
}

} // namespace millrace
