// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace millrace {

/// Rows of cells as lines of equal columns, two spaces apart: the first column to the left, the
/// others to the right. Rows may be of different lengths. Every line ends with a line end.
std::string text_table(const std::vector<std::vector<std::string>> &rows);

/// 1234567 as "1,234,567".
std::string grouped(std::uint64_t number);

/// Bytes for people: "812 B", "19.1 MiB".
std::string byte_count(std::uint64_t bytes);

/// A span of time for people: "0.4 s", "412 s", "27 min", "3.2 h", "5 d".
std::string duration_text(std::uint64_t milliseconds);

} // namespace millrace
