// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "actors/trainer/widen_token.hpp"
#include "runtime/device/device.hpp"

namespace millrace {

/// Fills `job.valued_before` and then every column, in the compute lane of `on`. The functions of
/// widen_token.hpp do it, on the host token after token, on a GPU at once.
status run_widening(device &on, const widen_job &job);

} // namespace millrace
