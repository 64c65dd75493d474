// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "runtime/result.hpp"

namespace millrace {

/// Whether a file must be on the disk before anything rests on it.
enum class file_sync : std::uint8_t { on, off };

/// A file that appears under its name only when it is whole: it is written under a temporary name
/// beside it ("NAME.partial-XXXXXX") and renamed by finish(). Without finish() the destructor
/// removes the temporary file. A full disk and a file size limit (RLIMIT_FSIZE) are errors like any
/// other; SIGXFSZ never arrives. Thread: one at a time.
class output_file {
public:
  /// Errors: not_found (no such folder), bad_argument (`path` is a folder or a device), no_space,
  /// io.
  static result<output_file> create(const std::filesystem::path &path);

  output_file(output_file &&other) noexcept;
  output_file &operator=(output_file &&other) noexcept;
  output_file(const output_file &) = delete;
  output_file &operator=(const output_file &) = delete;
  ~output_file();

  /// Appends. After an error nothing more is written: every later call returns that error.
  /// Errors: no_space, io.
  status write(std::span<const std::byte> bytes);

  /// Syncs, renames, syncs the folder. Nothing may be written after it.
  /// Errors: no_space, io.
  status finish(file_sync how = file_sync::on);

  /// Bytes accepted so far.
  std::uint64_t size() const noexcept { return size_; }
  const std::filesystem::path &path() const noexcept { return path_; }

private:
  output_file(std::filesystem::path path, std::filesystem::path temporary, int fd);

  status flush();
  status write_through(std::span<const std::byte> bytes);
  status refuse(int number);
  void discard() noexcept;

  std::filesystem::path path_;
  std::filesystem::path temporary_; ///< empty when there is none to remove
  int fd_ = -1;
  std::uint64_t size_ = 0;
  std::vector<std::byte> pending_;
  status broken_;
};

} // namespace millrace
