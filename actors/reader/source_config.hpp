// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "runtime/result.hpp"

namespace millrace {

/// With which policy versions the episodes of a recording count as sampled.
enum class source_version : std::uint8_t {
  fresh ///< as if sampled with the version of the step that takes them: never stale
};

/// Where episodes come from and how fast. Config keys: source.*.
struct source_config {
  /// A recording (.mrec). Default: none, then `preset` is made and read. Relative paths start at
  /// the current directory. Wins over `preset`.
  std::filesystem::path path;

  /// Name of a synthetic recording that the run makes for itself. Default: none. Ignored if `path`
  /// is given.
  std::string preset;

  /// Of the preset's random numbers: another seed gives other tokens and rewards. Default: 1.
  std::uint64_t seed = 1;

  /// Size of the preset, as a factor on its number of groups. Range: over 0, up to 1,000.
  /// Default: 1. Larger: a longer run over more data.
  double scale = 1.0;

  /// Default: fresh.
  source_version version = source_version::fresh;

  /// Groups a second that one run reads. Range: 0 (as fast as the bounds allow) to 1e6. Default: 0.
  /// Lower: imitates slow environments; the steps then wait for data.
  double pace = 0.0;

  /// Rules between the fields: there is a path, or a preset that is known.
  std::vector<error> validate() const;
};

} // namespace millrace
