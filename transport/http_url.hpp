// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/result.hpp"

namespace millrace {

/// Where an HTTP server is: "http://teacher-0:8000", "http://[::1]:8000/models/a/v1".
struct http_url {
  std::string host; ///< IPv4, IPv6 without brackets, or a name
  std::uint16_t port = 80;
  /// Stands before every path: "" or "/models/a". The "/v1" at the end of what clients of such
  /// servers call a base URL is not part of it.
  std::string prefix;

  /// Errors: bad_argument with the text and what is wrong with it; unsupported for https.
  static result<http_url> parse(std::string_view text);

  /// As a Host header has it: "[::1]:8000".
  std::string authority() const;
  std::string text() const { return "http://" + authority() + prefix; }

  bool operator==(const http_url &) const = default;
};

} // namespace millrace
