// SPDX-License-Identifier: Apache-2.0
#include "bench/meter.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

#include <sys/resource.h>

#include "runtime/result.hpp"

namespace millrace::bench {

namespace {

cost now() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval &time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now().time_since_epoch();
  return {.seconds = wall.count(),
          .processor_seconds = seconds(used.ru_utime) + seconds(used.ru_stime),
          .switches = static_cast<std::uint64_t>(used.ru_nvcsw),
          .page_faults = static_cast<std::uint64_t>(used.ru_minflt)};
}

/// Between the two nearest values, at a share of the way from the smallest to the largest.
double at(const std::vector<double> &sorted, double share) {
  const double place = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const auto above = std::min(below + 1, sorted.size() - 1);
  return std::lerp(sorted[below], sorted[above], place - std::floor(place));
}

} // namespace

cost measure(const std::function<void()> &what) {
  const auto before = now();
  what();
  const auto after = now();
  return {.seconds = after.seconds - before.seconds,
          .processor_seconds = after.processor_seconds - before.processor_seconds,
          .switches = after.switches - before.switches,
          .page_faults = after.page_faults - before.page_faults};
}

quartiles quartiles_of(std::vector<double> values) {
  MILLRACE_ASSERT(!values.empty(), "quartiles of nothing");
  std::sort(values.begin(), values.end());
  return {.low = at(values, 0.25), .median = at(values, 0.5), .high = at(values, 0.75)};
}

} // namespace millrace::bench
