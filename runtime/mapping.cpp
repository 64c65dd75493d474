// SPDX-License-Identifier: Apache-2.0
#include "runtime/mapping.hpp"

#include <cerrno>
#include <system_error>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace millrace {

namespace {

class descriptor_owner {
public:
  explicit descriptor_owner(int fd) noexcept : fd_(fd) {}
  descriptor_owner(const descriptor_owner &) = delete;
  descriptor_owner &operator=(const descriptor_owner &) = delete;
  ~descriptor_owner() {
    if (fd_ >= 0)
      ::close(fd_);
  }
  int get() const noexcept { return fd_; }

private:
  int fd_;
};

tl::unexpected<error> refused(const std::filesystem::path &path, int number) {
  return fail(number == ENOENT || number == ENOTDIR ? errc::not_found : errc::io,
              "cannot read '{}': {}", path.string(), std::generic_category().message(number));
}

} // namespace

result<frame> map_file(const std::filesystem::path &path) {
  // Non-blocking, so that opening a pipe that nobody writes to returns.
  const descriptor_owner file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0)
    return refused(path, errno);
  struct stat info {};
  if (::fstat(file.get(), &info) != 0)
    return refused(path, errno);
  if (S_ISDIR(info.st_mode))
    return fail(errc::bad_argument, "cannot read '{}': it is a directory", path.string());
  if (!S_ISREG(info.st_mode))
    return fail(errc::bad_argument, "cannot read '{}': it is not a regular file", path.string());
  return map_file(file.get(), static_cast<std::size_t>(info.st_size), path);
}

result<frame> map_file(int descriptor, std::size_t size, const std::filesystem::path &path) {
  if (size == 0)
    return frame();
  void *data = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, descriptor, 0);
  if (data == MAP_FAILED)
    return refused(path, errno);
  const std::shared_ptr<const void> owner(data, [size](void *p) { ::munmap(p, size); });
  return frame(owner, {static_cast<const std::byte *>(data), size});
}

} // namespace millrace
