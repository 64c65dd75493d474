// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "schema/recording_counts.hpp"

namespace millrace {

/// What to make up.
struct synth_options {
  std::string preset = "quickstart"; ///< a name of synth_presets.cpp
  double scale = 1;       ///< times the preset's groups, in (0, 1000]; every environment keeps one
  std::uint64_t seed = 1; ///< the same seed gives the same bytes, on any machine
  bool loose = false;     ///< every episode as loose frames, none sealed
};

/// Writes a recording of made-up episodes, spread as a real run spreads them: siblings lie between
/// those of other groups. Errors: bad_argument (an unknown preset, a scale out of range), io.
result<recording_counts> synthesize(const synth_options &options,
                                    const std::filesystem::path &path);

} // namespace millrace
