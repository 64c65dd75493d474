// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "bench/comparison.hpp"

namespace millrace::bench {

/// "tcp 1 MiB", "tcp 1 MiB, limit 2 MiB".
std::string name_of(const setting &what);

/// The table, on standard output, line by line. MB: 10^6 bytes.
void print_head(std::string_view title);
void print_row(const comparison &measured);

/// Every round of every line. @param file "-": standard output. Errors: io.
status write_json(const std::vector<comparison> &all, std::string_view title,
                  const std::string &file);

} // namespace millrace::bench
