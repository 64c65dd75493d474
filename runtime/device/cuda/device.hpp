// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/device/device.hpp"

namespace millrace {

// Two sources define these: device.cpp in builds with CUDA, absent.cpp in others.

/// The models of the GPUs of this machine; element N is cuda:N.
/// Errors: unsupported: this build has no CUDA; not_found: no driver or no GPU here.
result<std::vector<std::string>> cuda_models();

/// Errors: those of cuda_models(), bad_argument, io.
result<std::unique_ptr<device>> make_cuda_device(int index);

} // namespace millrace
