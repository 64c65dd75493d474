// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <csignal>
#include <filesystem>
#include <string>

namespace millrace {

// What files that are written have in common.

/// write(2) under a file size limit raises SIGXFSZ in the calling thread, whose default ends the
/// process. It is blocked for the call and taken away if it came, so that the call's EFBIG is all
/// that remains. The rest of the process keeps its handlers.
class size_signal_blocked {
public:
  size_signal_blocked() noexcept;
  size_signal_blocked(const size_signal_blocked &) = delete;
  size_signal_blocked &operator=(const size_signal_blocked &) = delete;
  ~size_signal_blocked();

private:
  sigset_t only_{};
  sigset_t before_{};
};

/// The text of an errno.
std::string reason_of(int number);

/// Puts the names in the folder of `path` on the disk. Returns 0, or the errno; where folders
/// cannot be synced, 0.
int sync_folder_of(const std::filesystem::path &path) noexcept;

} // namespace millrace
