// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "runtime/collective/collective.hpp"

namespace millrace {

/// The ranks of a training job whose ranks are threads of this process. Element r is rank r's.
/// Unit: each exchange must be over `deadline` after this rank came to it. A rank that is destroyed
/// while others wait for it ends them with `peer_lost`; one that just does not come is named.
std::vector<std::unique_ptr<collective>> make_local_collective(int size,
                                                               std::chrono::milliseconds deadline);

} // namespace millrace
