// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

namespace millrace::test {

/// As long as it lives no file of this process grows over `bytes`. Nothing may be logged meanwhile:
/// stderr may be a file.
class file_size_limit {
public:
  explicit file_size_limit(std::uint64_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit now{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &now);
  }
  file_size_limit(const file_size_limit &) = delete;
  file_size_limit &operator=(const file_size_limit &) = delete;
  ~file_size_limit() { ::setrlimit(RLIMIT_FSIZE, &before_); }

private:
  rlimit before_{};
};

/// As long as it lives the descriptor that this process has of a file is a pipe, which can be
/// neither synced nor cut nor written at an offset.
class broken_descriptor {
public:
  /// Precondition: exactly one descriptor of the file is open.
  explicit broken_descriptor(const std::filesystem::path &file) {
    for (const auto &entry : std::filesystem::directory_iterator("/proc/self/fd")) {
      std::error_code ignored;
      if (std::filesystem::read_symlink(entry.path(), ignored) == file)
        fd_ = std::stoi(entry.path().filename());
    }
    int ends[2] = {-1, -1};
    if (fd_ < 0 || ::pipe2(ends, O_CLOEXEC) != 0)
      return;
    kept_ = ::fcntl(fd_, F_DUPFD_CLOEXEC, 0);
    ::dup3(ends[0], fd_, O_CLOEXEC);
    ::close(ends[0]);
    ::close(ends[1]);
  }
  broken_descriptor(const broken_descriptor &) = delete;
  broken_descriptor &operator=(const broken_descriptor &) = delete;
  ~broken_descriptor() { mend(); }

  bool holds() const noexcept { return kept_ >= 0; }
  void mend() {
    if (kept_ < 0)
      return;
    ::dup3(kept_, fd_, O_CLOEXEC);
    ::close(kept_);
    kept_ = -1;
  }

private:
  int fd_ = -1;
  int kept_ = -1;
};

} // namespace millrace::test
