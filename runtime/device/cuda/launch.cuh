// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>

#include <cuda_runtime_api.h>

#include "runtime/device/cuda/handles.cuh"
#include "runtime/device/device.hpp"

namespace millrace {

/// For kernels. It also makes the device the thread's current one, as a launch needs it.
/// Precondition: `on` is a CUDA device.
result<cudaStream_t> compute_stream(device &on);

#ifdef __CUDACC__
namespace detail {

template <class Body> __global__ void call_for_each(const Body body, std::size_t count) {
  const auto step = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  for (auto i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += step)
    body(i);
}

template <class Body> status launch_for_each(device &on, std::size_t count, const Body &body) {
  constexpr std::size_t threads = 256;
  constexpr std::size_t most_blocks = 65'535;
  const auto stream = compute_stream(on);
  if (!stream)
    return tl::unexpected<error>(stream.error());
  const auto blocks = std::min((count + threads - 1) / threads, most_blocks);
  call_for_each<<<static_cast<unsigned>(blocks), threads, 0, *stream>>>(body, count);
  return cuda_status(cudaGetLastError(), "cudaLaunchKernel");
}

} // namespace detail
#endif

} // namespace millrace
