// SPDX-License-Identifier: Apache-2.0
#include "runtime/output_file.hpp"

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include "runtime/posix_file.hpp"

namespace millrace {

namespace {

constexpr std::size_t pending_limit = std::size_t{1} << 20;

errc kind_of(int number) {
  return number == ENOSPC || number == EDQUOT || number == EFBIG ? errc::no_space : errc::io;
}

} // namespace

output_file::output_file(std::filesystem::path path, std::filesystem::path temporary, int fd)
    : path_(std::move(path)), temporary_(std::move(temporary)), fd_(fd) {}

output_file::output_file(output_file &&other) noexcept
    : path_(std::move(other.path_)), temporary_(std::exchange(other.temporary_, {})),
      fd_(std::exchange(other.fd_, -1)), size_(other.size_), pending_(std::move(other.pending_)),
      broken_(std::move(other.broken_)) {}

output_file &output_file::operator=(output_file &&other) noexcept {
  if (this == &other)
    return *this;
  discard();
  path_ = std::move(other.path_);
  temporary_ = std::exchange(other.temporary_, {});
  fd_ = std::exchange(other.fd_, -1);
  size_ = other.size_;
  pending_ = std::move(other.pending_);
  broken_ = std::move(other.broken_);
  return *this;
}

output_file::~output_file() { discard(); }

void output_file::discard() noexcept {
  if (fd_ >= 0)
    ::close(fd_);
  fd_ = -1;
  if (!temporary_.empty())
    ::unlink(temporary_.c_str());
  temporary_.clear();
}

result<output_file> output_file::create(const std::filesystem::path &path) {
  std::error_code ignored;
  const auto there = std::filesystem::status(path, ignored);
  if (std::filesystem::exists(there) && !std::filesystem::is_regular_file(there))
    return fail(errc::bad_argument, "cannot write '{}': it is {}", path.string(),
                std::filesystem::is_directory(there) ? "a directory" : "not a regular file");
  if (path.filename().empty())
    return fail(errc::bad_argument, "cannot write '{}': it names no file", path.string());
  for (int attempt = 0;; ++attempt) {
    std::filesystem::path temporary = path;
    temporary += fmt::format(".partial-{}-{}", ::getpid(), attempt);
    const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd >= 0)
      return output_file(path, std::move(temporary), fd);
    if (errno != EEXIST)
      return fail(errno == ENOENT || errno == ENOTDIR ? errc::not_found : kind_of(errno),
                  "cannot write '{}': {}", path.string(), reason_of(errno));
  }
}

status output_file::refuse(int number) {
  broken_ = fail(kind_of(number), "cannot write '{}': {}; nothing is left of it", path_.string(),
                 reason_of(number));
  return broken_;
}

status output_file::write_through(std::span<const std::byte> bytes) {
  const size_signal_blocked guard;
  while (!bytes.empty()) {
    const auto wrote = ::write(fd_, bytes.data(), bytes.size());
    if (wrote < 0 && errno == EINTR)
      continue;
    if (wrote < 0)
      return refuse(errno);
    bytes = bytes.subspan(static_cast<std::size_t>(wrote));
  }
  return {};
}

status output_file::flush() {
  MILLRACE_TRY(write_through(pending_));
  pending_.clear();
  return {};
}

status output_file::write(std::span<const std::byte> bytes) {
  MILLRACE_ASSERT(fd_ >= 0, "'{}' is finished", path_.string());
  if (!broken_)
    return broken_;
  if (pending_.size() + bytes.size() > pending_limit)
    MILLRACE_TRY(flush());
  if (bytes.size() >= pending_limit)
    MILLRACE_TRY(write_through(bytes));
  else
    pending_.insert(pending_.end(), bytes.begin(), bytes.end());
  size_ += bytes.size();
  return {};
}

status output_file::finish(file_sync how) {
  MILLRACE_ASSERT(fd_ >= 0, "'{}' is finished", path_.string());
  if (!broken_)
    return broken_;
  MILLRACE_TRY(flush());
  if (how == file_sync::on && ::fsync(fd_) != 0)
    return refuse(errno);
  const int closed = ::close(std::exchange(fd_, -1));
  if (closed != 0)
    return refuse(errno);
  if (::rename(temporary_.c_str(), path_.c_str()) != 0)
    return refuse(errno);
  temporary_.clear();
  // The name may reach the disk later than the file does; where it cannot be synced it has to.
  if (how == file_sync::on)
    static_cast<void>(sync_folder_of(path_));
  return {};
}

} // namespace millrace
