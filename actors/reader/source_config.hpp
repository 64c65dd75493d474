// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/result.hpp"

namespace millrace {

/// With which policy versions the episodes of a recording count as sampled.
struct source_version {
  /// As if sampled with the version of the step that takes them: never stale.
  bool fresh = true;
  /// Otherwise: added to the recorded versions; below 0 it is 0.
  std::int64_t offset = 0;

  bool operator==(const source_version &) const = default;
};

/// Reads "fresh", "recorded" or "offset N". Errors: bad_config.
result<source_version> parse_source_version(std::string_view text);

/// Environments that live in the process of the trainer.
enum class live_env : std::uint8_t { none, bigram };
inline constexpr std::string_view bigram_env_name = "bigram";

/// Where episodes come from and how fast. Config keys: source.*.
struct source_config {
  /// A recording (.mrec). Default: none, then `preset` is made and read. Relative paths start at
  /// the current directory. Wins over `preset`.
  std::filesystem::path path;

  /// Name of a synthetic recording that the run makes for itself. Default: none. Ignored if `path`
  /// is given.
  std::string preset;

  /// Key: source.env. A live environment in the process of the trainer, in place of a recording.
  /// bigram: policy "bigram" samples; its table of settings is [env.bigram]. Default: none. It has
  /// no end: --steps ends the run. Wins over `path`.
  live_env env = live_env::none;

  /// Key: source.record. Of a live environment: a recording of all its episodes, there when the run
  /// is over. Default: none.
  std::filesystem::path record;

  /// Of the preset's random numbers: another seed gives other tokens and rewards. Default: 1.
  std::uint64_t seed = 1;

  /// Size of the preset, as a factor on its number of groups. Range: over 0, up to 1,000.
  /// Default: 1. Larger: a longer run over more data.
  double scale = 1.0;

  /// For parse_source_version. Default: fresh. Recorded versions count only against a policy that
  /// counts as theirs did.
  std::string version = "fresh";

  /// Groups a second that one run reads. Range: 0 (as fast as the bounds allow) to 1e6. Default: 0.
  /// Lower: imitates slow environments; the steps then wait for data.
  double pace = 0.0;

  bool is_live() const noexcept { return env != live_env::none; }

  /// Rules of the fields: there is a path, or a preset that is known; `version` can be read.
  std::vector<error> validate() const;
};

} // namespace millrace
