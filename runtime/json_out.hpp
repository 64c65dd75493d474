// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace millrace::json {

/// A JSON value to be written; objects keep the order in which their fields were set.
/// `tree out; out["steps"] = 3; out["ledger"]["trained"] = n; out["ranks"] = {0, 1};`
/// It throws only where it is used against its type, which is a bug.
using tree = nlohmann::ordered_json;

/// Any text that strict readers take: numbers that are not finite are written as null, bytes that
/// are not UTF-8 as U+FFFD. Doubles are written so that reading gives the same double back.
/// @param indent spaces for each level; below 0: all on one line. No line end at the end.
std::string dump(const tree &value, int indent = -1);

} // namespace millrace::json
