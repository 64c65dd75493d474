// SPDX-License-Identifier: Apache-2.0
#include "runtime/utf8.hpp"

#include <algorithm>

namespace millrace {

std::size_t utf8_length(std::string_view text) noexcept {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const auto follows = [&](std::size_t i, unsigned low = 0x80, unsigned high = 0xbf) {
    return i < text.size() && byte(i) >= low && byte(i) <= high;
  };
  if (text.empty())
    return 0;
  // Source: Unicode 15, table 3-7.
  const unsigned first = byte(0);
  if (first < 0x80)
    return 1;
  if (first >= 0xc2 && first <= 0xdf)
    return follows(1) ? 2 : 0;
  if (first >= 0xe0 && first <= 0xef) {
    const unsigned low = first == 0xe0 ? 0xa0 : 0x80;
    const unsigned high = first == 0xed ? 0x9f : 0xbf;
    return follows(1, low, high) && follows(2) ? 3 : 0;
  }
  if (first >= 0xf0 && first <= 0xf4) {
    const unsigned low = first == 0xf0 ? 0x90 : 0x80;
    const unsigned high = first == 0xf4 ? 0x8f : 0xbf;
    return follows(1, low, high) && follows(2) && follows(3) ? 4 : 0;
  }
  return 0;
}

std::string_view utf8_prefix(std::string_view text, std::size_t most) noexcept {
  if (text.size() <= most)
    return text;
  const auto inside = [&](std::size_t i) {
    return (static_cast<unsigned char>(text[i]) & 0xc0U) == 0x80U;
  };
  std::size_t end = most;
  while (end > 0 && most - end < 3 && inside(end))
    --end;
  return text.substr(0, inside(end) ? most : end); // bytes that are no characters: any end will do
}

bool is_utf8(std::string_view text) noexcept {
  while (!text.empty()) {
    const auto length = utf8_length(text);
    if (length == 0)
      return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string to_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const auto length = utf8_length(text);
    out.append(length == 0 ? "\xEF\xBF\xBD" : text.substr(0, length));
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return out;
}

std::string to_one_line(std::string_view text) {
  auto out = to_utf8(text);
  for (auto &c : out)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      c = ' ';
  return out;
}

} // namespace millrace
