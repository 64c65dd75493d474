// SPDX-License-Identifier: Apache-2.0
#include "actors/trainer/spread.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>

#include "schema/body.hpp"

namespace millrace {

namespace {

constexpr auto valued = static_cast<std::uint8_t>(wire::TokenFlag::Valued);

/// The end of the run of tokens from `at` on that are all valued, or all not. Eight flags are
/// looked at together: turns are long.
std::size_t end_of_run(std::span<const std::uint8_t> flags, std::size_t at) {
  constexpr std::uint64_t every_valued = 0x0101010101010101U * valued;
  const std::uint64_t want = (flags[at] & valued) != 0 ? every_valued : 0;
  while (at + sizeof want <= flags.size()) {
    std::uint64_t word = 0;
    std::memcpy(&word, flags.data() + at, sizeof word);
    const auto other = (word & every_valued) ^ want;
    if (other != 0)
      return at + static_cast<std::size_t>(std::countr_zero(other)) / 8;
    at += sizeof want;
  }
  while (at < flags.size() && (flags[at] & valued) == (want & valued))
    ++at;
  return at;
}

} // namespace

void spread(std::span<const std::uint8_t> flags, const float *values, float *out) noexcept {
  for (std::size_t at = 0; at < flags.size();) {
    const auto end = end_of_run(flags, at);
    if ((flags[at] & valued) != 0) {
      std::copy_n(values, end - at, out + at);
      values += end - at;
    } else {
      std::fill_n(out + at, end - at, 0.0F);
    }
    at = end;
  }
}

void fill_where(std::span<const std::uint8_t> flags, std::uint8_t bits, float value,
                float *out) noexcept {
  for (std::size_t i = 0; i < flags.size(); ++i)
    out[i] = (flags[i] & bits) != 0 ? value : 0.0F;
}

} // namespace millrace
