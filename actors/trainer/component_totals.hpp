// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace millrace {

/// Tokens of one step that each loss component trains: of a rank, or over all of them.
struct component_totals {
  std::int64_t rl = 0;
  std::int64_t ce = 0;
  std::int64_t ref_kl = 0;

  bool operator==(const component_totals &) const = default;
  component_totals &operator+=(const component_totals &other) noexcept {
    rl += other.rl;
    ce += other.ce;
    ref_kl += other.ref_kl;
    return *this;
  }
};

} // namespace millrace
