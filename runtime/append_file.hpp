// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

#include "runtime/frame.hpp"
#include "runtime/result.hpp"

namespace millrace {

/// A file that keeps its name and grows at its end, for what must outlive the process. Nobody else
/// can open it so: it is locked (flock) as long as this lives. A full disk and a file size limit
/// are errors like any other; SIGXFSZ never arrives. Thread: one at a time.
class append_file {
public:
  struct options {
    bool sync = true; ///< false: sync() does nothing
  };

  /// Makes the file if there is none. Errors: conflict (locked by another process, or a second time
  /// in this one), not_found (no folder), bad_argument (a folder, a device, a symbolic link),
  /// no_space (for its name), io.
  static result<append_file> open(const std::filesystem::path &path, options how);

  append_file(append_file &&other) noexcept;
  append_file &operator=(append_file &&other) = delete; // nothing needs it
  append_file(const append_file &) = delete;
  append_file &operator=(const append_file &) = delete;
  ~append_file();

  /// Writes all pieces at the end, or nothing: after a failure the file is cut back, and the call
  /// may be tried again. Errors: no_space (disk, quota or size limit), io. If it cannot be cut
  /// back, io for this and every later call.
  status append(std::span<const std::span<const std::byte>> pieces);

  /// Puts all of it on the disk, its name too. A failure is final, since what the kernel could not
  /// write it may have thrown away: every later call returns that error. Errors: io.
  status sync();

  /// Makes it shorter. A failure is final. Precondition: size <= size(). Errors: io.
  status truncate(std::uint64_t size);

  /// What is in it now, mapped. It must not be cut where somebody still reads. Errors: io.
  result<frame> map() const;

  std::uint64_t size() const noexcept { return size_; }
  const std::filesystem::path &path() const noexcept { return path_; }

private:
  append_file(std::filesystem::path path, int fd, options how);

  status lock();
  status look();
  int write_through(std::span<const std::span<const std::byte>> pieces);
  status break_off(const char *what, int number);

  std::filesystem::path path_;
  int fd_ = -1;
  options how_;
  std::uint64_t size_ = 0;
  bool named_ = false; ///< its name is on the disk
  status broken_;
};

} // namespace millrace
