// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace millrace {

/// One line of a file of JSON lines.
struct text_line {
  std::uint64_t number; ///< in the file, from 1, blank lines counted
  std::string_view text;
};

/// Cuts a text into lines. A line ends at LF and nowhere else: CR, NEL, U+2028 and U+2029 are
/// bytes of a record (a CR before LF is white space of JSON). The last line may lack its LF. Lines
/// of nothing but spaces, tabs and CRs are passed over. Owner: the caller keeps the bytes.
class line_reader {
public:
  explicit line_reader(std::string_view text) : rest_(text) {}

  std::optional<text_line> next();

private:
  std::string_view rest_;
  std::uint64_t number_ = 0;
};

} // namespace millrace
