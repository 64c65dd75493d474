// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/frame.hpp"

namespace millrace::bench {

/// What is sent in one measurement: `count` messages of `size` bytes, cut from one slab that was
/// written before, so that no two that follow each other share their bytes if the slab is larger.
struct load {
  std::size_t size = 0; ///< bytes of a message; at most that of the slab
  std::size_t count = 0;
  frame slab;

  std::uint64_t bytes() const noexcept { return std::uint64_t{size} * count; }
  frame message(std::size_t i) const { return slab.sub(i % (slab.size() / size) * size, size); }
};

} // namespace millrace::bench
