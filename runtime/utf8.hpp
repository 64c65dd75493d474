// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace millrace {

/// Bytes of the UTF-8 character at the start of `text`: 1 to 4; 0 if it is none (cut off, overlong,
/// a surrogate, over U+10FFFF) or `text` is empty.
std::size_t utf8_length(std::string_view text) noexcept;

/// The longest start of `text` of at most `most` bytes that does not end inside a character.
std::string_view utf8_prefix(std::string_view text, std::size_t most) noexcept;

bool is_utf8(std::string_view text) noexcept;

/// The text with every byte that is not part of a character replaced by U+FFFD.
std::string to_utf8(std::string_view text);

/// The same on one line of a terminal: control characters, which may come from a source, become
/// spaces.
std::string to_one_line(std::string_view text);

} // namespace millrace
