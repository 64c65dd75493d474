// SPDX-License-Identifier: Apache-2.0
#include "runtime/append_file.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "runtime/mapping.hpp"
#include "runtime/posix_file.hpp"

namespace millrace {

namespace {

errc code_of_write(int number) {
  return number == ENOSPC || number == EDQUOT || number == EFBIG ? errc::no_space : errc::io;
}

tl::unexpected<error> not_opened(const std::filesystem::path &path, int number) {
  if (number == ELOOP)
    return fail(errc::bad_argument, "cannot open '{}': it is a symbolic link", path.string());
  if (number == EISDIR)
    return fail(errc::bad_argument, "cannot open '{}': it is a directory", path.string());
  // A pipe that nobody reads, a device without a driver, a socket.
  if (number == ENXIO || number == ENODEV)
    return fail(errc::bad_argument, "cannot open '{}': it is not a regular file", path.string());
  if (code_of_write(number) == errc::no_space)
    return fail(errc::no_space, "cannot make '{}': {}", path.string(), reason_of(number));
  return fail(number == ENOENT || number == ENOTDIR ? errc::not_found : errc::io,
              "cannot open '{}': {}", path.string(), reason_of(number));
}

} // namespace

append_file::append_file(std::filesystem::path path, int fd, options how)
    : path_(std::move(path)), fd_(fd), how_(how) {}

append_file::append_file(append_file &&other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)), how_(other.how_),
      size_(other.size_), named_(other.named_), broken_(std::move(other.broken_)) {}

append_file::~append_file() {
  if (fd_ >= 0)
    ::close(fd_);
}

result<append_file> append_file::open(const std::filesystem::path &path, options how) {
  // Non-blocking, so that opening a pipe returns.
  constexpr int flags = O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
  const int fd = ::open(path.c_str(), flags, 0666);
  if (fd < 0)
    return not_opened(path, errno);
  append_file file(path, fd, how);
  MILLRACE_TRY(file.look());
  MILLRACE_TRY(file.lock());
  MILLRACE_TRY(file.look()); // who had it locked may have written
  return file;
}

/// What kind of file it is, and its size.
status append_file::look() {
  struct stat info {};
  if (::fstat(fd_, &info) != 0)
    return not_opened(path_, errno);
  if (!S_ISREG(info.st_mode))
    return fail(errc::bad_argument, "cannot open '{}': it is not a regular file", path_.string());
  size_ = static_cast<std::uint64_t>(info.st_size);
  return {};
}

status append_file::lock() {
  while (::flock(fd_, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK)
      return fail(errc::conflict, "'{}' is locked: another process has it open", path_.string());
    if (errno != EINTR)
      return fail(errc::io, "cannot lock '{}': {}", path_.string(), reason_of(errno));
  }
  // Between open and lock the name may have got another file.
  struct stat held {};
  struct stat named {};
  if (::fstat(fd_, &held) != 0 || ::lstat(path_.c_str(), &named) != 0)
    return not_opened(path_, errno);
  if (held.st_dev != named.st_dev || held.st_ino != named.st_ino)
    return fail(errc::conflict, "'{}' was replaced by another process while it was opened",
                path_.string());
  return {};
}

status append_file::break_off(const char *what, int number) {
  broken_ = fail(errc::io, "cannot {} '{}': {}; nothing more is written to it", what,
                 path_.string(), reason_of(number));
  return broken_;
}

/// Writes from size_ on. Returns 0 or an errno.
int append_file::write_through(std::span<const std::span<const std::byte>> pieces) {
  constexpr std::size_t at_once = 512; // IOV_MAX is 1024
  std::array<iovec, at_once> vectors{};
  auto offset = static_cast<off_t>(size_);
  std::size_t skip = 0; // bytes of pieces.front() that are written
  while (!pieces.empty()) {
    std::size_t count = 0;
    for (; count < std::min(at_once, pieces.size()); ++count) {
      const auto rest = pieces[count].subspan(count == 0 ? skip : 0);
      // The kernel only reads from it.
      vectors[count] = {const_cast<std::byte *>(rest.data()), rest.size()};
    }
    const auto wrote = ::pwritev(fd_, vectors.data(), static_cast<int>(count), offset);
    if (wrote < 0 && errno == EINTR)
      continue;
    if (wrote < 0)
      return errno;
    offset += wrote;
    skip += static_cast<std::size_t>(wrote);
    const auto before = pieces.size();
    while (!pieces.empty() && skip >= pieces.front().size()) {
      skip -= pieces.front().size();
      pieces = pieces.subspan(1);
    }
    if (wrote == 0 && pieces.size() == before)
      return EIO; // nothing would ever be written
  }
  return 0;
}

status append_file::append(std::span<const std::span<const std::byte>> pieces) {
  if (!broken_)
    return broken_;
  const size_signal_blocked guard;
  if (const int number = write_through(pieces); number != 0) {
    MILLRACE_TRY(truncate(size_));
    return fail(code_of_write(number), "cannot append to '{}': {}; it is as it was before",
                path_.string(), reason_of(number));
  }
  for (const auto piece : pieces)
    size_ += piece.size();
  return {};
}

status append_file::sync() {
  if (!broken_ || !how_.sync)
    return broken_;
  if (::fdatasync(fd_) != 0)
    return break_off("sync", errno);
  if (!named_)
    if (const int number = sync_folder_of(path_); number != 0)
      return break_off("sync the folder of", number);
  named_ = true;
  return {};
}

status append_file::truncate(std::uint64_t size) {
  MILLRACE_ASSERT(size <= size_, "'{}' has {} bytes, cut to {}", path_.string(), size_, size);
  if (!broken_)
    return broken_;
  int done = 0;
  do
    done = ::ftruncate(fd_, static_cast<off_t>(size));
  while (done != 0 && errno == EINTR);
  if (done != 0)
    return break_off("cut", errno);
  size_ = size;
  return {};
}

result<frame> append_file::map() const {
  return map_file(fd_, static_cast<std::size_t>(size_), path_);
}

} // namespace millrace
