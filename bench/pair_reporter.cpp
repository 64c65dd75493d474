// SPDX-License-Identifier: Apache-2.0
#include "bench/pair_reporter.hpp"

#include <fmt/core.h>

namespace millrace::bench {

bool pair_reporter::ReportContext(const Context &) {
  fmt::print("{:<22}{:>10}{:>12}{:>12}{:>10}\n{:<22}{:>10}{:>12}{:>12}{:>10}\n", "kernel", "tokens",
             "GB/s", other_, "ratio", "", "", "median", "GB/s", "");
  return true;
}

void pair_reporter::ReportRuns(const std::vector<Run> &runs) {
  for (const auto &run : runs)
    if (run.run_type == Run::RT_Aggregate && run.aggregate_name == "median")
      take(run);
}

void pair_reporter::take(const Run &run) {
  const auto name = run.run_name.function_name;
  const auto last = name.rfind('|');
  const auto middle = name.rfind('|', last - 1);
  const auto rate = run.counters.at("bytes_per_second").value / 1e9;
  if (name.substr(last + 1) == "kernel") {
    kernel_rate_ = rate;
    return;
  }
  fmt::print("{:<22}{:>10}{:>12.1f}{:>12.1f}{:>10.2f}\n", name.substr(0, middle),
             name.substr(middle + 1, last - middle - 1), kernel_rate_, rate, kernel_rate_ / rate);
}

} // namespace millrace::bench
