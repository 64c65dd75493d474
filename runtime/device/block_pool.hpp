// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

#include "runtime/result.hpp"

namespace millrace {

/// Blocks of memory that are used again. It grows and never shrinks: what a step needs the next one
/// needs too, and taking memory from a GPU stops all of its work. `Block` owns its memory and has a
/// size().
template <class Block> class block_pool {
public:
  /// A block of at least `bytes`: a free one that is not over twice as large, or a new one.
  /// @param make takes a size and returns a result<Block>; its error is passed on.
  template <class Make> result<Block> take(std::size_t bytes, Make make) {
    const auto size = rounded(bytes);
    if (const auto found = free_.lower_bound(size);
        found != free_.end() && found->first <= 2 * size) {
      Block block = std::move(found->second);
      free_.erase(found);
      return block;
    }
    result<Block> made = make(size);
    if (made)
      held_ += made->size();
    return made;
  }
  void give_back(Block block) {
    const auto size = block.size();
    free_.emplace(size, std::move(block));
  }

  /// Bytes of all blocks, taken or free.
  std::uint64_t held() const noexcept { return held_; }

private:
  /// Eight sizes for each power of two, so that micro batches that differ a little share blocks,
  /// for at most an eighth of waste.
  static std::size_t rounded(std::size_t bytes) noexcept {
    constexpr std::size_t smallest = 4096;
    const auto step = std::bit_floor(std::max(bytes, smallest)) / 8;
    return std::max((bytes + step - 1) / step * step, smallest);
  }

  std::multimap<std::size_t, Block> free_; ///< by size
  std::uint64_t held_ = 0;
};

} // namespace millrace
