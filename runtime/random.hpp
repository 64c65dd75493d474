// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace millrace {

/// Numbers that are the same on every machine for the same seed: for synthetic recordings and for
/// tests (std:: distributions differ between libraries). Not for secrets.
/// Source: splitmix64, Steele, Lea and Flood, OOPSLA 2014.
class random_source {
public:
  explicit random_source(std::uint64_t seed) noexcept : state_(seed) {}

  std::uint64_t next() noexcept {
    state_ += 0x9E3779B97F4A7C15U;
    std::uint64_t x = state_;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
    return x ^ (x >> 31);
  }

  /// In [0, bound). Precondition: bound > 0.
  std::uint32_t below(std::uint32_t bound) noexcept {
    return static_cast<std::uint32_t>(((next() >> 32) * bound) >> 32);
  }

  /// In [low, high], each as likely. Precondition: low <= high < 2^32 - 1.
  std::uint32_t between(std::uint32_t low, std::uint32_t high) noexcept {
    return low + below(high - low + 1);
  }

  /// True in `percent` of 100 cases.
  bool chance(std::uint32_t percent) noexcept { return below(100) < percent; }

  /// Another source, which depends on this one's seed and on `label` only.
  random_source derive(std::uint64_t label) const noexcept {
    random_source mixed(state_ ^ (label + 0x9E3779B97F4A7C15U) * 0xD1342543DE82EF95U);
    return random_source(mixed.next());
  }

private:
  std::uint64_t state_;
};

} // namespace millrace
