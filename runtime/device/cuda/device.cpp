// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/cuda/device.hpp"

#include <array>
#include <cstring>
#include <utility>

#include "runtime/device/block_pool.hpp"
#include "runtime/device/cuda/handles.cuh"
#include "runtime/device/cuda/launch.cuh"

namespace millrace {

namespace {

/// What an upload lands in.
struct landing_block {
  cuda_memory memory;
  cuda_event read; ///< in the compute lane: what was in it is read

  static result<landing_block> make(std::size_t size) {
    auto memory = make_cuda_memory(size);
    if (!memory)
      return tl::unexpected<error>(std::move(memory).error());
    auto read = make_cuda_event();
    if (!read)
      return tl::unexpected<error>(std::move(read).error());
    return landing_block{*std::move(memory), *std::move(read)};
  }
  std::size_t size() const noexcept { return memory.size(); }
};

/// Where the bytes of an upload leave from.
struct staging_slot {
  pinned_memory memory;
  cuda_event left; ///< in the copy lane: they are on the device
};

/// What the device and all of its memory keep alive.
struct cuda_state {
  int index = 0;
  cuda_stream copy;
  cuda_stream compute;
  block_pool<cuda_memory> scratch;
  block_pool<landing_block> landing;
  std::array<staging_slot, 2> staging; ///< one is filled while the other one's bytes leave
  std::uint64_t uploads = 0;

  cuda_state() = default;
  cuda_state(const cuda_state &) = delete;
  cuda_state &operator=(const cuda_state &) = delete;
  ~cuda_state() {
    (void)cudaSetDevice(index);
    if (copy && compute) {
      (void)cudaStreamSynchronize(copy.get());
      (void)cudaStreamSynchronize(compute.get());
    }
  }
  /// CUDA's current device is the thread's.
  status make_current() const {
    MILLRACE_TRY_CUDA(cudaSetDevice, index);
    return {};
  }
};

/// Memory of the compute lane, used again in the same lane: its order is enough.
struct scratch_lease {
  std::shared_ptr<cuda_state> from;
  cuda_memory block;

  scratch_lease(std::shared_ptr<cuda_state> state, cuda_memory memory)
      : from(std::move(state)), block(std::move(memory)) {}
  ~scratch_lease() { from->scratch.give_back(std::move(block)); }
  scratch_lease(const scratch_lease &) = delete;
  scratch_lease &operator=(const scratch_lease &) = delete;
};

/// Memory that the copy lane writes and the compute lane reads.
struct landing_lease {
  std::shared_ptr<cuda_state> from;
  landing_block block;

  landing_lease(std::shared_ptr<cuda_state> state, landing_block memory)
      : from(std::move(state)), block(std::move(memory)) {}
  ~landing_lease() {
    // The next upload into it waits for this. If it fails the device is broken, and the next call
    // says so.
    (void)cudaSetDevice(from->index);
    (void)cudaEventRecord(block.read.get(), from->compute.get());
    from->landing.give_back(std::move(block));
  }
  landing_lease(const landing_lease &) = delete;
  landing_lease &operator=(const landing_lease &) = delete;
};

/// Makes a slot's memory writable for `size` bytes: what was in it has left.
status prepare(staging_slot &slot, std::size_t size) {
  if (slot.left)
    MILLRACE_TRY_CUDA(cudaEventSynchronize, slot.left.get());
  else if (auto left = make_cuda_event())
    slot.left = *std::move(left);
  else
    return tl::unexpected<error>(std::move(left).error());
  if (slot.memory.size() >= size)
    return {};
  auto memory = make_pinned_memory(size + size / 8); // the next one may be a little longer
  if (!memory)
    return tl::unexpected<error>(std::move(memory).error());
  slot.memory = *std::move(memory);
  return {};
}

class cuda_device final : public device {
public:
  cuda_device(std::shared_ptr<cuda_state> state, std::string model)
      : state_(std::move(state)), name_(fmt::format("cuda:{} ({})", state_->index, model)) {}

  device_kind kind() const noexcept override { return device_kind::cuda; }
  std::string name() const override { return name_; }

  result<device_memory> allocate(std::size_t bytes) override {
    MILLRACE_TRY(state_->make_current());
    auto block = state_->scratch.take(bytes, make_cuda_memory);
    if (!block)
      return short_of(bytes, std::move(block).error());
    auto owner = std::make_shared<scratch_lease>(state_, *std::move(block));
    auto *const data = owner->block.data();
    return device_memory(std::move(owner), {data, bytes});
  }

  result<device_upload> upload(std::span<const std::span<const std::byte>> pieces) override {
    MILLRACE_TRY(state_->make_current());
    device_upload sent;
    std::size_t size = 0;
    for (const auto piece : pieces) {
      sent.offsets.push_back(size);
      size += aligned_for_device(piece.size());
    }
    auto &slot = state_->staging[state_->uploads % state_->staging.size()];
    MILLRACE_TRY(prepare(slot, size));
    for (std::size_t i = 0; i < pieces.size(); ++i)
      if (!pieces[i].empty()) // an empty one may have no address
        std::memcpy(slot.memory.data() + sent.offsets[i], pieces[i].data(), pieces[i].size());
    MILLRACE_TRY(send(slot, size, sent));
    ++state_->uploads;
    return sent;
  }

  status download(const std::byte *from, std::span<std::byte> to) override {
    MILLRACE_TRY(state_->make_current());
    // Out of the way of uploads. The driver copies through pinned memory of its own.
    if (!to.empty()) // an empty one may have no address
      MILLRACE_TRY_CUDA(cudaMemcpyAsync, to.data(), from, to.size(), cudaMemcpyDeviceToHost,
                        state_->compute.get());
    MILLRACE_TRY_CUDA(cudaStreamSynchronize, state_->compute.get());
    return {};
  }

  result<device_event> record(device_lane in) override {
    MILLRACE_TRY(state_->make_current());
    auto made = make_cuda_event();
    if (!made)
      return tl::unexpected<error>(std::move(made).error());
    MILLRACE_TRY_CUDA(cudaEventRecord, made->get(), stream(in));
    return std::make_shared<const cuda_event>(*std::move(made));
  }

  status wait(device_lane in, const device_event &until) override {
    if (!until)
      return {};
    MILLRACE_TRY(state_->make_current());
    const auto &event = *static_cast<const cuda_event *>(until.get());
    MILLRACE_TRY_CUDA(cudaStreamWaitEvent, stream(in), event.get(), 0);
    return {};
  }

  status synchronize() override {
    MILLRACE_TRY(state_->make_current());
    MILLRACE_TRY_CUDA(cudaStreamSynchronize, state_->copy.get());
    MILLRACE_TRY_CUDA(cudaStreamSynchronize, state_->compute.get());
    return {};
  }

  device_usage held() const noexcept override {
    return {.memory = state_->scratch.held() + state_->landing.held(),
            .staging = state_->staging[0].memory.size() + state_->staging[1].memory.size()};
  }

  cudaStream_t stream(device_lane in) const noexcept {
    return in == device_lane::copy ? state_->copy.get() : state_->compute.get();
  }
  status make_current() const { return state_->make_current(); }

private:
  tl::unexpected<error> short_of(std::size_t bytes, error why) const {
    why.message += fmt::format("; {} bytes were asked for, {} are held", bytes, held().memory);
    return tl::unexpected<error>(std::move(why));
  }

  status send(staging_slot &slot, std::size_t size, device_upload &sent) {
    auto block = state_->landing.take(size, landing_block::make);
    if (!block)
      return short_of(size, std::move(block).error());
    auto owner = std::make_shared<landing_lease>(state_, *std::move(block));
    auto *const data = owner->block.memory.data();
    auto *const copy = state_->copy.get();
    MILLRACE_TRY_CUDA(cudaStreamWaitEvent, copy, owner->block.read.get(), 0);
    sent.memory = device_memory(std::move(owner), {data, size});
    MILLRACE_TRY_CUDA(cudaMemcpyAsync, data, slot.memory.data(), size, cudaMemcpyHostToDevice,
                      copy);
    MILLRACE_TRY_CUDA(cudaEventRecord, slot.left.get(), copy);
    auto ready = record(device_lane::copy);
    if (!ready)
      return tl::unexpected<error>(std::move(ready).error());
    sent.ready = *std::move(ready);
    return {};
  }

  std::shared_ptr<cuda_state> state_;
  std::string name_;
};

} // namespace

result<std::vector<std::string>> cuda_models() {
  int count = 0;
  MILLRACE_TRY_CUDA(cudaGetDeviceCount, &count);
  std::vector<std::string> models;
  for (int index = 0; index < count; ++index) {
    cudaDeviceProp about{};
    MILLRACE_TRY_CUDA(cudaGetDeviceProperties, &about, index);
    models.emplace_back(static_cast<const char *>(about.name));
  }
  return models;
}

result<std::unique_ptr<device>> make_cuda_device(int index) {
  const auto models = cuda_models();
  if (!models)
    return tl::unexpected<error>(models.error());
  if (index < 0 || static_cast<std::size_t>(index) >= models->size())
    return fail(errc::bad_argument, "there is no device 'cuda:{}': this machine has {} of them",
                index, models->size());
  auto state = std::make_shared<cuda_state>();
  state->index = index;
  MILLRACE_TRY(state->make_current());
  for (auto *one : {&state->copy, &state->compute}) {
    auto made = make_cuda_stream();
    if (!made)
      return tl::unexpected<error>(std::move(made).error());
    *one = *std::move(made);
  }
  return std::make_unique<cuda_device>(std::move(state),
                                       (*models)[static_cast<std::size_t>(index)]);
}

result<cudaStream_t> compute_stream(device &on) {
  MILLRACE_ASSERT(on.kind() == device_kind::cuda, "a kernel for {}", on.name());
  const auto &here = static_cast<const cuda_device &>(on);
  MILLRACE_TRY(here.make_current());
  return here.stream(device_lane::compute);
}

} // namespace millrace
