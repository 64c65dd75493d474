// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

namespace millrace {

/// The rl weights of trainable tokens after pruning: `value` where the advantage is not 0, else
/// 0.0.
/// @param out as many as advantages.
void write_pruned(std::span<const float> advantages, float value, float *out) noexcept;

} // namespace millrace
