// SPDX-License-Identifier: Apache-2.0
#include "tests/support/counted_new.hpp"

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

std::atomic<std::uint64_t> allocated{0};

void *counted(std::size_t size, std::size_t alignment) {
  allocated += size;
  if (void *p = std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment))
    return p;
  throw std::bad_alloc();
}

} // namespace

void *operator new(std::size_t size) {
  return counted(size == 0 ? 1 : size, alignof(std::max_align_t));
}
void *operator new(std::size_t size, std::align_val_t alignment) {
  return counted(size == 0 ? 1 : size, static_cast<std::size_t>(alignment));
}
// std::stable_sort asks in this way; AddressSanitizer has one of its own if we have none.
void *operator new(std::size_t size, const std::nothrow_t &) noexcept {
  allocated += size;
  return std::malloc(size == 0 ? 1 : size);
}
void operator delete(void *p) noexcept { std::free(p); }
void operator delete(void *p, const std::nothrow_t &) noexcept { std::free(p); }
void operator delete(void *p, std::size_t) noexcept { std::free(p); }
void operator delete(void *p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void *p, std::size_t, std::align_val_t) noexcept { std::free(p); }

namespace millrace::test {

std::uint64_t allocated_bytes() noexcept { return allocated; }

} // namespace millrace::test
