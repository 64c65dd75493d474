// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/result.hpp"

namespace millrace::json {

/// One thing in a text that JSON does not allow, or that no 64-bit number or double holds.
struct defect {
  std::size_t offset; ///< byte in the text
  std::string path;   ///< of the value: "traces[0].rewards.score"
  std::string what;   ///< "NaN is not a JSON number"
};

/// A text that was made JSON again, and what had to be done for it.
struct repaired_text {
  std::string text;
  std::vector<defect> defects; ///< in the order of the text; those of one value count once each
};

/// The slow second look at a text that the parser refused. NaN, infinities and numbers that nothing
/// holds become null; lone surrogates and bytes that are not UTF-8 become U+FFFD; all else stays
/// byte for byte. Who uses the result decides by `defects` what he can still believe. Bounded: one
/// pass, no recursion, at most 1,000 defects.
/// Errors: bad_format if it still is not one JSON value (syntax, depth over max_depth).
result<repaired_text> repair(std::string_view text);

/// The first defect of a text that the parser refused with `reason`, as an error.
tl::unexpected<error> explain(std::string_view text, std::string_view reason);

/// Whether a token is a number by JSON's grammar, and whether it has a fraction or an exponent.
enum class number_form { none, integer, real };
number_form form_of(std::string_view token) noexcept;
/// Whether a byte may stand in a number, or in a word like null.
bool is_scalar(char c) noexcept;

/// Adds a step to a path, as messages show it: ".key", or "[\"a key\"]" where it is not a plain
/// word; control characters and long keys do not get into a message.
void append_key(std::string &path, std::string_view key);
void append_index(std::string &path, std::size_t index);
/// A path for a message: what is longer than 200 bytes is cut in the middle.
std::string shorten(std::string path);

} // namespace millrace::json
