// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "runtime/frame.hpp"
#include "runtime/result.hpp"
#include "schema/body.hpp"

namespace millrace {

/// A FlatBufferBuilder over memory of a size that is known before: it never grows, so spans of
/// uninitialised vectors stay valid until it is finished, and the finished body takes the memory
/// without a copy. For bodies that carry token arrays; small ones use finish_body().
class fixed_builder final : private flatbuffers::Allocator {
public:
  /// @param size an upper bound of what is built, below limits::body_bytes. To need more is a bug.
  explicit fixed_builder(std::size_t size, std::shared_ptr<memory_meter> meter = nullptr)
      : meter_(std::move(meter)), builder_((size + 63) / 64 * 64, this) {}
  fixed_builder(const fixed_builder &) = delete; // the builder keeps a pointer to its allocator
  fixed_builder &operator=(const fixed_builder &) = delete;

  flatbuffers::FlatBufferBuilder &operator*() noexcept { return builder_; }
  flatbuffers::FlatBufferBuilder *operator->() noexcept { return &builder_; }

  /// Finishes the body with its identifier; the frame holds all of the memory.
  template <class T> frame finish(flatbuffers::Offset<T> root) && {
    builder_.Finish(root, body_identifier<T>);
    const std::size_t used = builder_.GetSize();
    std::size_t size = 0;
    std::size_t offset = 0;
    builder_.ReleaseRaw(size, offset);
    return std::move(*memory_).freeze(offset, used);
  }

private:
  std::uint8_t *allocate(std::size_t size) override {
    MILLRACE_ASSERT(!memory_, "a body grew over its planned size to {} bytes", size);
    memory_.emplace(size, meter_);
    return reinterpret_cast<std::uint8_t *>(memory_->data());
  }
  void deallocate(std::uint8_t *, std::size_t) override { memory_.reset(); }

  std::shared_ptr<memory_meter> meter_;
  std::optional<buffer> memory_;
  flatbuffers::FlatBufferBuilder builder_; // last: it gives its memory back to memory_
};

} // namespace millrace
