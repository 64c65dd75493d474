// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sstream>
#include <string>
#include <vector>

namespace millrace::test {

/// Numbers with a space between, as a failed check should show them. (To GCC 12 fmt::join over
/// floats is a stringop-overflow, falsely.)
template <class T> std::string shown(const std::vector<T> &values) {
  std::ostringstream out;
  for (const T value : values)
    out << (out.tellp() == 0 ? "" : " ") << value;
  return out.str();
}

} // namespace millrace::test
