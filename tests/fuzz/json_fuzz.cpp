// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "runtime/json.hpp"
#include "runtime/json_scan.hpp"

/// The parser and the slow scanner must agree on what is JSON; what the scanner repairs must parse.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  using namespace millrace;
  const std::string_view text(reinterpret_cast<const char *>(data), size);
  json::document document;
  const auto parsed = document.parse(text);
  const auto scanned = json::repair(text);
  MILLRACE_ASSERT(parsed.has_value() == (scanned && scanned->defects.empty()),
                  "parser: {}; scanner: {}", parsed ? "ok" : parsed.error().message,
                  scanned ? (scanned->defects.empty() ? "ok" : scanned->defects.front().what)
                          : scanned.error().message);
  if (scanned && !scanned->defects.empty()) {
    const auto again = document.parse(scanned->text);
    MILLRACE_ASSERT(again, "repaired: {}", again.error().message);
  }
  return 0;
}
