// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <span>

namespace millrace {

/// Values in memory that is used again from micro batch to micro batch: it grows and never
/// shrinks, and what is new in it is not initialised. May be absent, which keeps the memory.
template <class T> class host_array {
public:
  /// Makes room for `size` values, all to be written by the caller, and makes the array present.
  std::span<T> resize(std::size_t size) {
    if (size > capacity_) {
      memory_ = std::make_unique_for_overwrite<T[]>(size);
      capacity_ = size;
    }
    size_ = size;
    present_ = true;
    return {memory_.get(), size};
  }
  void make_absent() noexcept {
    size_ = 0;
    present_ = false;
  }

  bool has_value() const noexcept { return present_; }
  std::span<const T> values() const noexcept { return {memory_.get(), size_}; }
  std::size_t size() const noexcept { return size_; }

private:
  std::unique_ptr<T[]> memory_;
  std::size_t capacity_ = 0;
  std::size_t size_ = 0;
  bool present_ = false;
};

} // namespace millrace
