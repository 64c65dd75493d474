// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "config/assignments.hpp"
#include "config/key.hpp"
#include "runtime/result.hpp"

namespace millrace {

/// The value of an assignment as the type wants it; a choice as its name, of a table the one entry
/// that it sets.
/// Errors: bad_config with what is wrong ("'two' is a string, an integer is wanted"), without the
/// key and its place.
result<key_value> convert(const assignment &written, const key_type &type);

/// For docs and messages: "integer, 1 to 1024", "ship or hold".
std::string range_text(const key_type &type);

/// A value as TOML; "off" for an optional number without one. A choice is given by its name.
std::string toml_text(const key_value &value);

} // namespace millrace
