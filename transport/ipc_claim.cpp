// SPDX-License-Identifier: Apache-2.0
#include "transport/ipc_claim.hpp"

#include <cerrno>
#include <cstring>
#include <string>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

namespace millrace {
namespace {

std::string lock_of(const std::filesystem::path &path) { return path.string() + ".lock"; }

tl::unexpected<error> refused(const std::filesystem::path &path, int number) {
  return fail(number == ENOENT || number == ENOTDIR ? errc::not_found : errc::io,
              "cannot bind 'ipc://{}': {}", path.string(), std::generic_category().message(number));
}

tl::unexpected<error> in_use(const std::filesystem::path &path) {
  return fail(errc::conflict,
              "cannot bind 'ipc://{}': a live process has it; choose another path or stop that one",
              path.string());
}

/// Whether the name still means this file: another process may have removed it since it was opened.
bool is_current(int lock, const std::string &name) {
  struct stat opened {};
  struct stat named {};
  return ::fstat(lock, &opened) == 0 && ::stat(name.c_str(), &named) == 0 &&
         opened.st_ino == named.st_ino && opened.st_dev == named.st_dev;
}

/// The lock file, open and locked.
result<int> lock(const std::filesystem::path &path) {
  const std::string name = lock_of(path);
  for (;;) {
    const int fd = ::open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
      return refused(path, errno);
    if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
      const int number = errno;
      ::close(fd);
      if (number == EWOULDBLOCK)
        return in_use(path);
      return refused(path, number);
    }
    if (is_current(fd, name))
      return fd;
    ::close(fd);
  }
}

/// Removes a socket that nobody listens on. For owners that take no claim: another program.
status remove_dead_socket(const std::filesystem::path &path) {
  struct stat there {};
  if (::lstat(path.c_str(), &there) != 0)
    return errno == ENOENT ? status() : refused(path, errno);
  if (!S_ISSOCK(there.st_mode))
    return fail(errc::conflict, "cannot bind 'ipc://{}': something that is no socket is there",
                path.string());
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.native().size() >= sizeof address.sun_path)
    return refused(path, ENAMETOOLONG);
  std::memcpy(address.sun_path, path.c_str(), path.native().size() + 1);
  const int probe = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (probe < 0)
    return refused(path, errno);
  const int connected =
      ::connect(probe, reinterpret_cast<const sockaddr *>(&address), sizeof address);
  const int number = errno;
  ::close(probe);
  if (connected != 0 && number == ECONNREFUSED)
    return ::unlink(path.c_str()) == 0 ? status() : refused(path, errno);
  if (connected == 0 || number == EAGAIN) // EAGAIN: it listens, and its queue is full
    return in_use(path);
  return refused(path, number);
}

} // namespace

result<ipc_claim> ipc_claim::take(const std::filesystem::path &path) {
  auto held = lock(path);
  if (!held)
    return tl::unexpected(std::move(held).error());
  if (status free = remove_dead_socket(path); !free) {
    ::unlink(lock_of(path).c_str());
    ::close(*held);
    return tl::unexpected(std::move(free).error());
  }
  return ipc_claim(path, *held);
}

ipc_claim::ipc_claim(std::filesystem::path path, int lock) : path_(std::move(path)), lock_(lock) {}

ipc_claim::ipc_claim(ipc_claim &&other) noexcept
    : path_(std::move(other.path_)), lock_(std::exchange(other.lock_, -1)) {}

ipc_claim &ipc_claim::operator=(ipc_claim &&other) noexcept {
  if (this != &other) {
    release();
    path_ = std::move(other.path_);
    lock_ = std::exchange(other.lock_, -1);
  }
  return *this;
}

ipc_claim::~ipc_claim() { release(); }

void ipc_claim::release() noexcept {
  if (lock_ < 0)
    return;
  ::unlink(path_.c_str());
  ::unlink((path_.native() + ".lock").c_str()); // while it is locked: nobody else can hold it
  ::close(std::exchange(lock_, -1));
}

} // namespace millrace
