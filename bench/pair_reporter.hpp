// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <benchmark/benchmark.h>

namespace millrace::bench {

/// Prints medians of benchmarks in pairs, a row each: "NAME|TOKENS|kernel" and after it
/// "NAME|TOKENS|memcpy", what it is compared with.
class pair_reporter : public benchmark::BenchmarkReporter {
public:
  /// @param other what it is compared with, over its column.
  explicit pair_reporter(std::string other) : other_(std::move(other)) {}
  bool ReportContext(const Context &context) override;
  void ReportRuns(const std::vector<Run> &runs) override;

private:
  void take(const Run &run);

  std::string other_;
  double kernel_rate_ = 0;
};

} // namespace millrace::bench
