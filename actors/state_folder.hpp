// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "runtime/result.hpp"

namespace millrace {

/// The socket file at which `run` answers tools (ipc), in its state folder.
std::filesystem::path control_socket(const std::filesystem::path &folder);

/// Where a run keeps what outlives it. A folder that the run made up itself is removed with the
/// object, unless it is kept.
class state_folder {
public:
  /// @param given created if it is not there; empty: a new folder below the system's temporary one.
  /// Errors: io, if it cannot be made or is not a folder.
  static result<state_folder> open(const std::filesystem::path &given);

  state_folder(state_folder &&other) noexcept;
  state_folder &operator=(state_folder &&) = delete;
  ~state_folder();

  const std::filesystem::path &path() const noexcept { return path_; }
  /// There is something in it for a person.
  void keep() noexcept { temporary_ = false; }

private:
  state_folder(std::filesystem::path path, bool temporary)
      : path_(std::move(path)), temporary_(temporary) {}

  std::filesystem::path path_;
  bool temporary_;
};

} // namespace millrace
