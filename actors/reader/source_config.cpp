// SPDX-License-Identifier: Apache-2.0
#include "actors/reader/source_config.hpp"

#include "schema/synth_presets.hpp"

namespace millrace {

std::vector<error> source_config::validate() const {
  if (path.empty() && preset.empty())
    return {{errc::bad_config, "source.path or source.preset must be set: there is no data"}};
  if (!path.empty())
    return {};
  if (const auto known = synth_preset_named(preset); !known)
    return {{errc::bad_config, fmt::format("source.preset: {}", known.error().message)}};
  return {};
}

} // namespace millrace
