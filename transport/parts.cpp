// SPDX-License-Identifier: Apache-2.0
#include "transport/parts.hpp"

#include <utility>

#include <sys/eventfd.h>
#include <unistd.h>

#include "runtime/result.hpp"

namespace millrace {

namespace {

constexpr std::size_t copy_received_below = 8
                                            << 10; // libzmq receives smaller ones in common buffers
constexpr std::size_t copy_sent_below = 64;        // costs less than a reference

/// Owner of the bytes of one received part.
class held_part {
public:
  held_part(zmq::message_t part, std::shared_ptr<arrivals> from)
      : part_(std::move(part)), size_(part_.size()), from_(std::move(from)) {
    if (size_ < copy_received_below) {
      copy_ = frame::copy_of({static_cast<const std::byte *>(part_.data()), size_});
      part_.rebuild();
    }
    from_->add(size_);
  }
  held_part(const held_part &) = delete;
  held_part &operator=(const held_part &) = delete;
  ~held_part() {
    copy_ = {};
    part_.rebuild(); // free before it is counted off
    from_->remove(size_);
  }

  std::span<const std::byte> bytes() const noexcept {
    if (size_ < copy_received_below)
      return copy_.bytes();
    return {part_.data<std::byte>(), size_};
  }

private:
  zmq::message_t part_;
  frame copy_;
  std::size_t size_;
  std::shared_ptr<arrivals> from_;
};

} // namespace

waker::waker() : fd_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  MILLRACE_ASSERT(fd_ >= 0, "no eventfd: out of file descriptors");
}

waker::~waker() { ::close(fd_); }

void waker::wake() noexcept {
  const std::uint64_t one = 1;
  (void)!::write(fd_, &one, sizeof one);
}

void waker::clear() noexcept {
  std::uint64_t count = 0;
  (void)!::read(fd_, &count, sizeof count);
}

void arrivals::add(std::uint64_t bytes) noexcept {
  held.fetch_add(bytes, std::memory_order_relaxed);
  meter->add(bytes);
}

void arrivals::remove(std::uint64_t bytes) noexcept {
  held.fetch_sub(bytes, std::memory_order_relaxed);
  meter->remove(bytes);
  if (starving->load(std::memory_order_relaxed) && starving->exchange(false))
    wake->wake();
}

frame take_part(zmq::message_t part, const std::shared_ptr<arrivals> &from) {
  auto owner = std::make_shared<held_part>(std::move(part), from);
  const auto bytes = owner->bytes();
  return frame(std::move(owner), bytes);
}

zmq::message_t lend_part(const frame &bytes) {
  if (bytes.size() < copy_sent_below)
    return bytes.empty() ? zmq::message_t() : zmq::message_t(bytes.data(), bytes.size());
  auto *reference = new frame(bytes);
  const auto drop = [](void *, void *hint) { delete static_cast<frame *>(hint); };
  // libzmq only reads what it sends.
  return zmq::message_t(const_cast<std::byte *>(bytes.data()), bytes.size(), drop, reference);
}

} // namespace millrace
