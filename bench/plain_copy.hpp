// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>

#include "runtime/device/device.hpp"

namespace millrace::bench {

// What uploads and kernels are compared with: one call that moves as many bytes, and waits for
// them. On a GPU that is cudaMemcpyAsync, with pinned memory on the host; on the host it is memcpy.

/// From the host to the device.
std::function<void()> plain_upload(device &on, std::size_t bytes);
/// From the device to itself.
std::function<void()> plain_move(device &on, std::size_t bytes);

} // namespace millrace::bench
