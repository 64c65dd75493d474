// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "runtime/device/device.hpp"
#ifdef __CUDACC__
#include "runtime/device/cuda/launch.cuh"
#endif

namespace millrace {

/// Calls body(i) for each i below `count`, in the compute lane: on the host in order, on a GPU all
/// at once. `body` is a value with a `MILLRACE_DEVICE_FN void operator()(std::size_t) const`, and
/// what it points to is memory of the device.
/// For .cu files: nvcc makes kernels of them; builds without CUDA compile them as C++, where there
/// is no CUDA device that could be asked.
template <class Body> status for_each(device &on, std::size_t count, const Body &body) {
  if (count == 0)
    return {};
  if (on.kind() == device_kind::host) {
    for (std::size_t i = 0; i < count; ++i)
      body(i);
    return {};
  }
#ifdef __CUDACC__
  return detail::launch_for_each(on, count, body);
#else
  return fail(errc::unsupported, "this source was compiled without CUDA");
#endif
}

} // namespace millrace
