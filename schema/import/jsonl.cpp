// SPDX-License-Identifier: Apache-2.0
#include "schema/import/jsonl.hpp"

namespace millrace {

std::optional<text_line> line_reader::next() {
  while (!rest_.empty()) {
    const auto end = rest_.find('\n');
    const auto text = rest_.substr(0, end);
    rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + 1);
    ++number_;
    if (text.find_first_not_of(" \t\r") != std::string_view::npos)
      return text_line{number_, text};
  }
  return std::nullopt;
}

} // namespace millrace
