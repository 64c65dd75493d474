// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "runtime/log.hpp"

namespace millrace {

/// Log lines about what others send, who could send without end: the first ten are written.
class limited_log {
public:
  void warn(const std::string &line) {
    if (written_ == most)
      return;
    log::warn("{}{}", line, ++written_ == most ? "; more of these are only counted" : "");
  }

private:
  static constexpr int most = 10;
  int written_ = 0;
};

} // namespace millrace
