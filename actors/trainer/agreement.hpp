// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "runtime/collective/collective.hpp"
#include "runtime/digest.hpp"
#include "runtime/result.hpp"

namespace millrace {

/// All ranks compare what they were handed for a step, before any other collective of it: on a GPU
/// a mismatch there would be a hang. One exchange of fixed size.
/// Errors: `conflict`, with the same message on every rank, if not all were handed the same step,
/// step digest and number of micro batches; else what the collective says.
[[nodiscard]] status agree(collective &ranks, std::uint64_t step, const digest128 &step_digest,
                           std::uint64_t micro_batches);

} // namespace millrace
