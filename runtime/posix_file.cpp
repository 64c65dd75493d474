// SPDX-License-Identifier: Apache-2.0
#include "runtime/posix_file.hpp"

#include <cerrno>
#include <ctime>
#include <system_error>

#include <fcntl.h>
#include <unistd.h>

namespace millrace {

size_signal_blocked::size_signal_blocked() noexcept {
  sigemptyset(&only_);
  sigaddset(&only_, SIGXFSZ);
  pthread_sigmask(SIG_BLOCK, &only_, &before_);
}

size_signal_blocked::~size_signal_blocked() {
  const timespec no_wait{};
  if (sigismember(&before_, SIGXFSZ) == 0)
    while (sigtimedwait(&only_, nullptr, &no_wait) > 0)
      ;
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

std::string reason_of(int number) { return std::generic_category().message(number); }

int sync_folder_of(const std::filesystem::path &path) noexcept {
  const auto folder = path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0)
    return errno;
  const int number = ::fsync(fd) == 0 ? 0 : errno;
  ::close(fd);
  return number == EINVAL || number == ENOTSUP ? 0 : number;
}

} // namespace millrace
