// SPDX-License-Identifier: Apache-2.0
#include "actors/reader/source_config.hpp"

#include <charconv>

#include "schema/synth_presets.hpp"

namespace millrace {

result<source_version> parse_source_version(std::string_view text) {
  constexpr std::string_view prefix = "offset ";
  if (text == "fresh")
    return source_version{};
  if (text == "recorded")
    return source_version{.fresh = false, .offset = 0};
  std::int64_t offset = 0;
  if (text.starts_with(prefix)) {
    const auto *end = text.data() + text.size();
    const auto found = std::from_chars(text.data() + prefix.size(), end, offset);
    if (found.ec == std::errc{} && found.ptr == end)
      return source_version{.fresh = false, .offset = offset};
  }
  return fail(
      errc::bad_config,
      "source.version = \"{}\": \"fresh\", \"recorded\" or \"offset N\" is wanted, N a whole "
      "number",
      text);
}

std::vector<error> source_config::validate() const {
  std::vector<error> errors;
  if (!is_live() && !record.empty())
    errors.push_back({errc::bad_config, "source.record: only a live environment (source.env) is "
                                        "recorded"});
  if (!is_live() && path.empty() && preset.empty())
    errors.push_back(
        {errc::bad_config, "source.path or source.preset must be set: there is no data"});
  if (!is_live() && path.empty() && !preset.empty())
    if (const auto known = synth_preset_named(preset); !known)
      errors.push_back({errc::bad_config, fmt::format("source.preset: {}", known.error().message)});
  if (const auto sampled = parse_source_version(version); !sampled)
    errors.push_back(sampled.error());
  return errors;
}

} // namespace millrace
