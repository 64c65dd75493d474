// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

namespace millrace {

// Loops over all tokens of a micro batch, where it is widened. `flags`: bits of wire::TokenFlag.

/// Compact to full: each valued token takes the next of `values`, the others 0.0.
/// @param values one for each valued token.
/// @param out as many as flags.
void spread(std::span<const std::uint8_t> flags, const float *values, float *out) noexcept;

/// `value` on the tokens that have a flag of `bits`, 0.0 on the others.
/// @param out as many as flags.
void fill_where(std::span<const std::uint8_t> flags, std::uint8_t bits, float value,
                float *out) noexcept;

} // namespace millrace
