// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "runtime/frame.hpp"

#include <zmq.hpp>

namespace millrace {

/// Wakes a thread that polls a file descriptor. Thread: any.
class waker {
public:
  waker();
  ~waker();
  waker(const waker &) = delete;
  waker &operator=(const waker &) = delete;

  int fd() const noexcept { return fd_; }
  void wake() noexcept;
  /// To be called when fd() can be read.
  void clear() noexcept;

private:
  int fd_;
};

/// What became of the parts that one sender's messages brought: how many bytes are still held.
/// Owner: every frame on such a part holds it.
struct arrivals {
  std::shared_ptr<memory_meter> meter;
  std::shared_ptr<waker> wake;
  std::shared_ptr<std::atomic<bool>> starving; ///< somebody waits for memory: wake the hub once
  std::atomic<std::uint64_t> held{0};

  void add(std::uint64_t bytes) noexcept;
  void remove(std::uint64_t bytes) noexcept;
};

/// A received part as a frame, counted until its last reference is gone. Large ones stay where they
/// are. Small ones are copied into aligned memory: libzmq puts them anywhere, and each would keep
/// the 8 KiB alive that it was received in.
frame take_part(zmq::message_t part, const std::shared_ptr<arrivals> &from);

/// A frame as a part to be sent. libzmq drops the reference, on its own thread, when it is done;
/// tiny ones are copied instead.
zmq::message_t lend_part(const frame &bytes);

} // namespace millrace
