// SPDX-License-Identifier: Apache-2.0
#include "bench/plain_copy.hpp"

#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include <benchmark/benchmark.h>
#include <fmt/core.h>

#ifdef MILLRACE_HAS_CUDA
#include "runtime/device/cuda/handles.cuh"
#include "runtime/device/cuda/launch.cuh"
#endif

namespace millrace::bench {

namespace {

std::function<void()> on_host(std::size_t bytes) {
  const auto from = std::make_shared<std::vector<std::byte>>(bytes);
  const auto to = std::make_shared<std::vector<std::byte>>(bytes);
  return [from, to, bytes] {
    std::memcpy(to->data(), from->data(), bytes);
    benchmark::DoNotOptimize(to->data());
    benchmark::ClobberMemory();
  };
}

#ifdef MILLRACE_HAS_CUDA
template <class T> T must(result<T> got) {
  if (got)
    return *std::move(got);
  fmt::print(stderr, "{}\n", got.error().message);
  std::exit(1);
}

std::function<void()> on_cuda(device &on, std::shared_ptr<void> keeps, const std::byte *from,
                              std::size_t bytes) {
  const auto stream = must(compute_stream(on));
  const auto to = std::make_shared<cuda_memory>(must(make_cuda_memory(bytes)));
  return [keeps = std::move(keeps), from, to, bytes, stream] {
    (void)cudaMemcpyAsync(to->data(), from, bytes, cudaMemcpyDefault, stream);
    (void)cudaStreamSynchronize(stream);
  };
}
#endif

} // namespace

std::function<void()> plain_upload(device &on, std::size_t bytes) {
#ifdef MILLRACE_HAS_CUDA
  if (on.kind() == device_kind::cuda) {
    const auto from = std::make_shared<pinned_memory>(must(make_pinned_memory(bytes)));
    return on_cuda(on, from, from->data(), bytes);
  }
#endif
  (void)on;
  return on_host(bytes);
}

std::function<void()> plain_move(device &on, std::size_t bytes) {
#ifdef MILLRACE_HAS_CUDA
  if (on.kind() == device_kind::cuda) {
    (void)must(compute_stream(on)); // makes the device current
    const auto from = std::make_shared<cuda_memory>(must(make_cuda_memory(bytes)));
    return on_cuda(on, from, from->data(), bytes);
  }
#endif
  (void)on;
  return on_host(bytes);
}

} // namespace millrace::bench
