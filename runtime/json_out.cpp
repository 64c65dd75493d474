// SPDX-License-Identifier: Apache-2.0
#include "runtime/json_out.hpp"

namespace millrace::json {

std::string dump(const tree &value, int indent) {
  // nlohmann writes a number that is not finite as null of itself.
  return value.dump(indent, ' ', false, tree::error_handler_t::replace);
}

} // namespace millrace::json
