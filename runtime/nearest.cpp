// SPDX-License-Identifier: Apache-2.0
#include "runtime/nearest.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

namespace millrace {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] == b[j] ? 0U : 1U);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

std::optional<std::string_view> nearest(std::string_view text,
                                        std::span<const std::string_view> words) {
  std::optional<std::string_view> best;
  std::size_t smallest = std::max(std::size_t{2}, text.size() / 3) + 1;
  for (const std::string_view word : words) {
    const std::size_t distance = edit_distance(text, word);
    if (distance < smallest) {
      smallest = distance;
      best = word;
    }
  }
  return best;
}

} // namespace millrace
