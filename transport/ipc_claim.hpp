// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "runtime/result.hpp"

namespace millrace {

/// The right to bind an ipc path. libzmq unlinks whatever has the path before it binds, so two live
/// processes could take it from each other, and a killed one leaves its socket file behind. A lock
/// file beside it ("PATH.lock"), which the system gives up with its process, says who lives.
/// Owner: hold it from before the bind until after the socket is closed. Thread: one at a time.
class ipc_claim {
public:
  /// Takes the lock and removes a socket file whose owner is dead. Errors: conflict (a live process
  /// has the path, or what is there is no socket), not_found (no such folder), io.
  static result<ipc_claim> take(const std::filesystem::path &path);

  ipc_claim(ipc_claim &&other) noexcept;
  ipc_claim &operator=(ipc_claim &&other) noexcept;
  ipc_claim(const ipc_claim &) = delete;
  ipc_claim &operator=(const ipc_claim &) = delete;
  /// Removes the socket file, if it is still there, and the lock file.
  ~ipc_claim();

private:
  ipc_claim(std::filesystem::path path, int lock);
  void release() noexcept;

  std::filesystem::path path_;
  int lock_ = -1;
};

} // namespace millrace
