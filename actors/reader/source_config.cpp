// SPDX-License-Identifier: Apache-2.0
#include "actors/reader/source_config.hpp"

namespace millrace {

std::vector<error> source_config::validate() const {
  if (path.empty() && preset.empty())
    return {{errc::bad_config, "source.path or source.preset must be set: there is no data"}};
  return {};
}

} // namespace millrace
