// SPDX-License-Identifier: Apache-2.0
#include "runtime/collective/nccl_communicator.cuh"

#include <algorithm>
#include <future>
#include <thread>
#include <utility>

#include "runtime/log.hpp"

namespace millrace {

namespace {

template <class Block>
status grow(Block &block, std::size_t size, result<Block> (*make)(std::size_t)) {
  if (block.size() >= size)
    return {};
  auto made = make(std::max(size, 2 * block.size()));
  if (!made)
    return tl::unexpected<error>(std::move(made).error());
  block = *std::move(made);
  return {};
}

/// Waits until what was sent has arrived. False: it has not by `end`, or the communicator is
/// broken.
bool flushed(const nccl_communicator &one, std::chrono::steady_clock::time_point end) {
  auto state = one.calls->comm_finalize(one.handle);
  while (state == ncclInProgress && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (one.calls->comm_get_async_error(one.handle, &state) != ncclSuccess)
      return false;
  }
  return state == ncclSuccess;
}

void close(nccl_communicator &one, bool whole, std::chrono::steady_clock::time_point end) {
  (void)cudaSetDevice(one.device);
  if (one.handle == nullptr)
    return;
  if (whole && flushed(one, end))
    (void)one.calls->comm_destroy(one.handle);
  else
    (void)one.calls->comm_abort(one.handle);
}

} // namespace

status nccl_communicator::open() {
  MILLRACE_TRY_CUDA(cudaSetDevice, device);
  auto own_stream = make_cuda_stream();
  if (!own_stream)
    return tl::unexpected<error>(std::move(own_stream).error());
  auto own_event = make_cuda_event();
  if (!own_event)
    return tl::unexpected<error>(std::move(own_event).error());
  stream = *std::move(own_stream);
  done = *std::move(own_event);
  return {};
}

status nccl_communicator::make_room(std::size_t block, std::size_t ranks) {
  MILLRACE_TRY(grow(sent, block, make_cuda_memory));
  MILLRACE_TRY(grow(gathered, block * ranks, make_cuda_memory));
  return grow(staging, block * (ranks + 1), make_pinned_memory);
}

status nccl_communicator::check(ncclResult_t code, std::string_view call) const {
  if (code == ncclSuccess || code == ncclInProgress)
    return {};
  // A socket that a peer's end closes is a system error here.
  const bool peer = code == ncclRemoteError || code == ncclSystemError;
  const char *const more = calls->get_last_error(handle);
  return fail(peer ? errc::peer_lost : errc::io, "{}: {} ({})", call, calls->get_error_string(code),
              more == nullptr ? "" : more);
}

void give_up(std::unique_ptr<nccl_communicator> one, bool whole, std::chrono::seconds grace) {
  if (!one)
    return;
  const auto device = one->device;
  const auto bytes = one->sent.size() + one->gathered.size();
  // Other ranks may be slow to take what was sent, or never will.
  const auto end = std::chrono::steady_clock::now() + std::min(grace, std::chrono::seconds(1));
  std::promise<void> promise;
  const auto over = promise.get_future();
  std::thread([one = std::move(one), whole, end, promise = std::move(promise)]() mutable {
    close(*one, whole, end);
    one.reset();
    promise.set_value();
  }).detach();
  if (over.wait_for(grace) != std::future_status::ready)
    log::warn(
        "NCCL has not given up a communicator on cuda:{} within {} s: it is left behind with a "
        "thread and at least {} bytes; start this process again before long",
        device, grace.count(), bytes);
}

} // namespace millrace
