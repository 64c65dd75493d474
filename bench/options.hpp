// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "bench/comparison.hpp"

namespace millrace::bench {

/// What all programs here take:
///   --rounds N   how often each line is measured (9)
///   --mib N      how much is sent in one measurement (512)
///   --only TEXT  only lines that have this in their name, for example "tcp 1 MiB"
///   --json FILE  the figures of every round; "-": instead of the table
struct options {
  effort how;
  std::string only;
  std::string json;
};

/// Errors: bad_argument.
result<options> parse_options(int argc, char **argv);

/// Measures and prints line after line. @returns the exit code: 1 if something could not be
/// measured, 2 on bad use.
int run(int argc, char **argv, std::string_view title, const std::vector<setting> &settings);

} // namespace millrace::bench
