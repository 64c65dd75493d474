// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "runtime/result.hpp"

namespace millrace {

/// A TOML value of a type that no key wants.
struct foreign_value {
  std::string_view type; ///< "a table", "an array" (of something else than strings), "a date"

  bool operator==(const foreign_value &) const = default;
};

/// A value as it was written. A string stands for everything that is wanted as text.
using written_value =
    std::variant<bool, std::int64_t, double, std::string, std::vector<std::string>, foreign_value>;

/// The type of a foreign_value that is a table.
inline constexpr std::string_view table_type = "a table";

/// How a message shows a value and names its type: "'two' is a string", "[...] is an array".
std::string describe(const written_value &value);

/// `text` for use inside a message: one line, control characters escaped, cut after 80 bytes.
std::string printable(std::string_view text);

/// `text` as a TOML basic string. Precondition: no control characters.
std::string toml_quoted(std::string_view text);

/// One "key = value" from a file or from the command line.
struct assignment {
  std::vector<std::string> path; ///< the key's parts; a quoted part may hold dots
  std::string place;             ///< "FILE:12" or "--set"
  written_value value;
  /// From the command line: the text after "=", which a key that wants text may take as it is.
  std::optional<std::string> raw;
  std::uint32_t line = 0; ///< of the key, from 1

  /// The parts joined with dots, for messages.
  std::string name() const;
};

/// All assignments of a TOML text, in the order of its lines; tables are taken apart, an empty one
/// stands for itself. Errors: not TOML, with place and reason.
result<std::vector<assignment>> parse_toml(std::string_view text, std::string_view file);

/// Those of one "key=value" (several if the value is an inline table). A value that is not TOML is
/// a string. Errors: no "=", or a key that is not one.
result<std::vector<assignment>> parse_set(std::string_view text);

} // namespace millrace
