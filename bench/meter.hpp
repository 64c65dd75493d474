// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace millrace::bench {

/// What something cost this process: all threads together.
struct cost {
  double seconds = 0;            ///< of the wall
  double processor_seconds = 0;  ///< user and system
  std::uint64_t switches = 0;    ///< times a thread went to sleep
  std::uint64_t page_faults = 0; ///< memory that the system had to give first
};

cost measure(const std::function<void()> &what);

/// Of values in any order: the one in the middle, and those a quarter from either end.
struct quartiles {
  double low = 0, median = 0, high = 0;
};
/// Precondition: there are some.
quartiles quartiles_of(std::vector<double> values);

} // namespace millrace::bench
