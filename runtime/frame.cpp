// SPDX-License-Identifier: Apache-2.0
#include "runtime/frame.hpp"

#include <cstring>
#include <new>

#include "runtime/result.hpp"

namespace millrace {

namespace {
constexpr std::align_val_t alignment{64};
} // namespace

void memory_meter::add(std::uint64_t bytes) noexcept {
  const auto now = held.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  auto peak = held_peak.load(std::memory_order_relaxed);
  while (peak < now && !held_peak.compare_exchange_weak(peak, now, std::memory_order_relaxed))
    ;
}

frame frame::copy_of(std::span<const std::byte> bytes, const std::shared_ptr<memory_meter> &meter) {
  buffer copy(bytes.size(), meter);
  if (!bytes.empty())
    std::memcpy(copy.data(), bytes.data(), bytes.size());
  return std::move(copy).freeze();
}

frame frame::sub(std::size_t offset, std::size_t size) const {
  MILLRACE_ASSERT(offset <= bytes_.size() && size <= bytes_.size() - offset,
                  "offset {}, size {}, frame of {} bytes", offset, size, bytes_.size());
  return frame(owner_, bytes_.subspan(offset, size));
}

buffer::buffer(std::size_t size, std::shared_ptr<memory_meter> meter) : size_(size) {
  auto *raw = static_cast<std::byte *>(::operator new(size, alignment));
  if (meter)
    meter->add(size);
  data_ = std::shared_ptr<std::byte>(raw, [size, meter = std::move(meter)](std::byte *p) {
    ::operator delete(p, alignment);
    if (meter)
      meter->remove(size);
  });
}

frame buffer::freeze(std::size_t offset, std::size_t size) && {
  MILLRACE_ASSERT(offset <= size_ && size <= size_ - offset, "offset {}, size {}, buffer of {}",
                  offset, size, size_);
  const std::span<const std::byte> bytes{data_.get() + offset, size};
  return frame(std::move(data_), bytes);
}

} // namespace millrace
