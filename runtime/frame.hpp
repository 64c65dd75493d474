// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace millrace {

/// Bytes that this process keeps alive, for progress, limits and reports.
/// Thread: any. Unit: bytes. A frame counts once, at its allocated size, until its last reference
/// is gone.
struct memory_meter {
  std::atomic<std::uint64_t> held{0};      ///< allocated by frames made with this meter
  std::atomic<std::uint64_t> held_peak{0}; ///< the largest `held` so far
  std::atomic<std::uint64_t> copied{0}; ///< token bytes copied on the data path, sealing included

  void add(std::uint64_t bytes) noexcept;
  void remove(std::uint64_t bytes) noexcept { held.fetch_sub(bytes, std::memory_order_relaxed); }
};

/// Immutable bytes with a shared owner: a received part, a mapped span, a finished FlatBuffer.
/// Copying a frame copies a reference. Owner: whoever made the bytes; they live until the last
/// frame on them is gone.
class frame {
public:
  frame() noexcept = default;

  /// Bytes that `owner` keeps alive (a mapping, another frame's owner).
  frame(std::shared_ptr<const void> owner, std::span<const std::byte> bytes) noexcept
      : owner_(std::move(owner)), bytes_(bytes) {}

  /// A frame from a temporary span would dangle: name the owner.
  explicit frame(std::span<const std::byte>) = delete;

  /// A copy of `bytes` in memory aligned to 64. The one way to make a frame by copying.
  static frame copy_of(std::span<const std::byte> bytes,
                       const std::shared_ptr<memory_meter> &meter = nullptr);

  std::span<const std::byte> bytes() const noexcept { return bytes_; }
  const std::byte *data() const noexcept { return bytes_.data(); }
  std::size_t size() const noexcept { return bytes_.size(); }
  bool empty() const noexcept { return bytes_.empty(); }

  /// A part of this frame, with the same owner. Precondition: it lies inside.
  frame sub(std::size_t offset, std::size_t size) const;

private:
  std::shared_ptr<const void> owner_;
  std::span<const std::byte> bytes_;
};

/// The bodies of one message: a FlatBuffer and the raw arrays that it describes.
using message = std::vector<frame>;

/// Memory to be written once and then shared: aligned to 64, uninitialised, counted by a meter.
/// Becomes a frame.
class buffer {
public:
  explicit buffer(std::size_t size, std::shared_ptr<memory_meter> meter = nullptr);

  std::span<std::byte> bytes() noexcept { return {data_.get(), size_}; }
  std::byte *data() noexcept { return data_.get(); }
  std::size_t size() const noexcept { return size_; }

  /// Gives the memory up to a frame over its bytes [offset, offset + size).
  frame freeze(std::size_t offset, std::size_t size) &&;
  frame freeze() && { return std::move(*this).freeze(0, size_); }

private:
  std::shared_ptr<std::byte> data_;
  std::size_t size_ = 0;
};

} // namespace millrace
