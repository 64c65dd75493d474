// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/host/device.hpp"

#include <cstring>
#include <new>

#include "runtime/device/block_pool.hpp"

namespace millrace {

namespace {

struct aligned_delete {
  void operator()(std::byte *data) const noexcept {
    ::operator delete(data, std::align_val_t(device_alignment));
  }
};

class host_block {
public:
  static result<host_block> make(std::size_t size) {
    host_block block;
    auto *const data = ::operator new(size, std::align_val_t(device_alignment), std::nothrow);
    block.data_.reset(static_cast<std::byte *>(data));
    block.size_ = size;
    if (data == nullptr)
      return fail(errc::io, "operator new: no memory for {} bytes", size);
    return block;
  }
  std::byte *data() const noexcept { return data_.get(); }
  std::size_t size() const noexcept { return size_; }

private:
  std::unique_ptr<std::byte, aligned_delete> data_;
  std::size_t size_ = 0;
};

/// A block that goes back to its pool, which lives as long.
struct lease {
  std::shared_ptr<block_pool<host_block>> pool;
  host_block block;

  lease(std::shared_ptr<block_pool<host_block>> from, host_block what)
      : pool(std::move(from)), block(std::move(what)) {}
  ~lease() { pool->give_back(std::move(block)); }
  lease(const lease &) = delete;
  lease &operator=(const lease &) = delete;
};

class host_device final : public device {
public:
  device_kind kind() const noexcept override { return device_kind::host; }
  std::string name() const override { return "host"; }

  result<device_memory> allocate(std::size_t bytes) override {
    auto block = pool_->take(bytes, host_block::make);
    if (!block)
      return tl::unexpected<error>(std::move(block).error());
    auto owner = std::make_shared<lease>(pool_, *std::move(block));
    auto *const data = owner->block.data();
    return device_memory(std::move(owner), {data, bytes});
  }

  result<device_upload> upload(std::span<const std::span<const std::byte>> pieces) override {
    device_upload sent;
    std::size_t size = 0;
    for (const auto piece : pieces) {
      sent.offsets.push_back(size);
      size += aligned_for_device(piece.size());
    }
    auto memory = allocate(size);
    if (!memory)
      return tl::unexpected<error>(std::move(memory).error());
    sent.memory = *std::move(memory);
    for (std::size_t i = 0; i < pieces.size(); ++i)
      if (!pieces[i].empty()) // an empty one may have no address
        std::memcpy(sent.memory.data() + sent.offsets[i], pieces[i].data(), pieces[i].size());
    return sent;
  }

  status download(const std::byte *from, std::span<std::byte> to) override {
    if (!to.empty())
      std::memcpy(to.data(), from, to.size());
    return {};
  }

  result<device_event> record(device_lane) override { return device_event(); }
  status wait(device_lane, const device_event &) override { return {}; }
  status synchronize() override { return {}; }
  device_usage held() const noexcept override { return {.memory = pool_->held()}; }

private:
  std::shared_ptr<block_pool<host_block>> pool_ = std::make_shared<block_pool<host_block>>();
};

} // namespace

std::unique_ptr<device> make_host_device() { return std::make_unique<host_device>(); }

} // namespace millrace
