// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>
#include <utility>

#include <cuda_runtime_api.h>

#include "runtime/result.hpp"

// One type for each kind of CUDA handle. Only for builds with CUDA, so the name: the check of
// headers leaves .cuh alone.

namespace millrace {

/// Errors: not_found: no driver or no GPU; io. The message begins with `call`.
status cuda_status(cudaError_t code, std::string_view call);

/// Leaves the enclosing function with an error that names the CUDA function if it fails.
#define MILLRACE_TRY_CUDA(function, ...)                                                           \
  MILLRACE_TRY(::millrace::cuda_status(function(__VA_ARGS__), #function))

namespace detail {
// What they return is dropped: a destructor cannot fail, and what broke the device says so again.
struct stream_destroyer {
  void operator()(cudaStream_t stream) const noexcept { (void)cudaStreamDestroy(stream); }
};
struct event_destroyer {
  void operator()(cudaEvent_t event) const noexcept { (void)cudaEventDestroy(event); }
};
struct device_freer {
  void operator()(std::byte *data) const noexcept { (void)cudaFree(data); }
};
struct pinned_freer {
  void operator()(std::byte *data) const noexcept { (void)cudaFreeHost(data); }
};
} // namespace detail

using cuda_stream = std::unique_ptr<CUstream_st, detail::stream_destroyer>;
using cuda_event = std::unique_ptr<CUevent_st, detail::event_destroyer>;

/// A stream that does not wait for the default stream.
result<cuda_stream> make_cuda_stream();
/// An event without a time, which is cheaper.
result<cuda_event> make_cuda_event();

template <class Freer> class cuda_block {
public:
  cuda_block() noexcept = default;
  cuda_block(std::byte *data, std::size_t size) noexcept : data_(data), size_(size) {}
  std::byte *data() const noexcept { return data_.get(); }
  std::size_t size() const noexcept { return size_; }

private:
  std::unique_ptr<std::byte, Freer> data_;
  std::size_t size_ = 0;
};

/// Memory of the current device, and memory of the host that it copies from without a detour.
using cuda_memory = cuda_block<detail::device_freer>;
using pinned_memory = cuda_block<detail::pinned_freer>;

result<cuda_memory> make_cuda_memory(std::size_t size);
result<pinned_memory> make_pinned_memory(std::size_t size);

} // namespace millrace
