// SPDX-License-Identifier: Apache-2.0
#include "runtime/text_table.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>

namespace millrace {

std::string text_table(const std::vector<std::vector<std::string>> &rows) {
  std::vector<std::size_t> widths;
  for (const auto &row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i)
      widths[i] = std::max(widths[i], row[i].size());
  }
  std::string out;
  for (const auto &row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string filling(widths[i] - row[i].size(), ' ');
      line += i == 0 ? row[i] + filling : "  " + filling + row[i];
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + '\n';
  }
  return out;
}

std::string grouped(std::uint64_t number) {
  auto digits = fmt::format("{}", number);
  for (auto at = digits.size(); at > 3;) {
    at -= 3;
    digits.insert(at, 1, ',');
  }
  return digits;
}

std::string byte_count(std::uint64_t bytes) {
  constexpr std::array<std::string_view, 4> units{"KiB", "MiB", "GiB", "TiB"};
  if (bytes < 1024)
    return fmt::format("{} B", bytes);
  auto value = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  for (; value >= 1024 && unit + 1 < units.size(); ++unit)
    value /= 1024;
  return fmt::format("{:.1f} {}", value, units[unit]);
}

std::string duration_text(std::uint64_t milliseconds) {
  const double seconds = static_cast<double>(milliseconds) / 1'000;
  if (seconds < 9.95)
    return fmt::format("{:.1f} s", seconds);
  if (seconds < 999.5)
    return fmt::format("{:.0f} s", seconds);
  if (seconds < 2 * 3'600)
    return fmt::format("{:.0f} min", seconds / 60);
  if (seconds < 48 * 3'600)
    return fmt::format("{:.1f} h", seconds / 3'600);
  return fmt::format("{:.0f} d", seconds / 86'400);
}

} // namespace millrace
