// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "runtime/device/device.hpp"

namespace millrace {

/// The processor as a device: what is put into a lane is done at once, so every event has passed.
/// An upload copies its pieces, once: into one block, as on a GPU, so that nobody has to keep them.
std::unique_ptr<device> make_host_device();

} // namespace millrace
