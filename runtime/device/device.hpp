// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/result.hpp"

namespace millrace {

enum class device_kind : std::uint8_t { host, cuda };

/// The two queues of a device (CUDA streams). What is put into one is done in order; between the
/// two only wait() orders. On the host everything is done when the call returns.
enum class device_lane : std::uint8_t { copy, compute };

/// Memory of a device, aligned to 256, with whatever is in it. Copying it copies a reference.
/// After the last one is gone the memory is used again, behind the work that the compute lane has
/// been given by then: let go of it once the last work that reads it is in the lane.
class device_memory {
public:
  device_memory() noexcept = default;
  device_memory(std::shared_ptr<void> owner, std::span<std::byte> bytes) noexcept
      : owner_(std::move(owner)), bytes_(bytes) {}

  std::byte *data() const noexcept { return bytes_.data(); }
  std::size_t size() const noexcept { return bytes_.size(); }
  /// The values that begin at byte `offset`.
  template <class T> T *at(std::size_t offset) const noexcept {
    return reinterpret_cast<T *>(bytes_.data() + offset);
  }

private:
  std::shared_ptr<void> owner_;
  std::span<std::byte> bytes_;
};

/// A moment in a lane: everything that the lane was given before it. Only the device that made it
/// knows what it is; an empty one has passed.
using device_event = std::shared_ptr<const void>;

/// Bytes on their way to a device.
struct device_upload {
  device_memory memory;
  std::vector<std::size_t> offsets; ///< where each piece begins in it, a multiple of 256
  device_event ready;               ///< in the copy lane: they are there
};

/// What a device keeps, in use or for the next time. Unit: bytes.
struct device_usage {
  std::uint64_t memory = 0;  ///< on the device
  std::uint64_t staging = 0; ///< pinned, on the host
};

/// Where a trainer computes. It keeps the memory that it has once taken. Owner: one trainer; memory
/// and events may outlive it. Thread: one at a time, also for letting go of its memory.
/// Errors: io; the message begins with the name of the call that failed.
class device {
public:
  virtual ~device() = default;
  device(const device &) = delete;
  device &operator=(const device &) = delete;

  virtual device_kind kind() const noexcept = 0;
  /// For people: "host", "cuda:0 (NVIDIA H200)".
  virtual std::string name() const = 0;

  /// Memory for work in the compute lane.
  virtual result<device_memory> allocate(std::size_t bytes) = 0;

  /// Sends pieces of host memory, in the copy lane; they may change once it returns. Whoever reads
  /// them in the compute lane calls wait() before. At most two uploads are under way: the third
  /// waits until the first one's bytes have left the host.
  virtual result<device_upload> upload(std::span<const std::span<const std::byte>> pieces) = 0;

  /// Copies from the device once the compute lane has done what it was given, and waits for it.
  virtual status download(const std::byte *from, std::span<std::byte> to) = 0;

  virtual result<device_event> record(device_lane in) = 0;
  /// What the lane is given from now on is done after `until`. Waits for nothing itself.
  virtual status wait(device_lane in, const device_event &until) = 0;
  /// Waits until both lanes are done. Errors: also those of work that was put into them.
  virtual status synchronize() = 0;

  virtual device_usage held() const noexcept = 0;

protected:
  device() = default;
};

struct device_info {
  std::string name;  ///< for make_device()
  std::string model; ///< for people
};

/// The devices of this machine, the host first.
std::vector<device_info> devices();

/// @param name "host", "cuda" (the first one) or "cuda:N".
/// Errors: bad_argument: there is no such name; unsupported: this build has no CUDA; not_found: no
/// driver or no GPU here; io.
result<std::unique_ptr<device>> make_device(std::string_view name);

/// Every piece of an upload and every array of ours begins at a multiple of it.
constexpr std::size_t device_alignment = 256;
constexpr std::size_t aligned_for_device(std::size_t bytes) noexcept {
  return (bytes + device_alignment - 1) / device_alignment * device_alignment;
}

} // namespace millrace
