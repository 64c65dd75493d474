// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/json_out.hpp"
#include "schema/recording_counts.hpp"

namespace millrace {

/// Least, mean and greatest of some numbers.
struct number_spread {
  std::uint64_t count = 0;
  double sum = 0;
  double low = 0;
  double high = 0;

  void add(double value) noexcept;
  double mean() const noexcept { return count == 0 ? 0 : sum / static_cast<double>(count); }
};

/// What one environment has in a recording.
struct environment_summary {
  std::uint64_t groups = 0;
  std::uint64_t complete = 0; ///< groups that have as many episodes as their size says
  std::uint64_t uniform = 0;  ///< groups with several rewards, all equal: nothing to learn
  std::uint64_t ok = 0;       ///< episodes by how they ended
  std::uint64_t errored = 0;
  std::uint64_t cancelled = 0;
  std::uint64_t rejected = 0;
  std::uint64_t eval = 0; ///< of all of them
  std::uint64_t traces = 0;
  std::uint64_t nodes = 0;
  std::uint64_t tokens = 0;
  std::uint64_t trainable = 0;     ///< tokens whose mask is true
  std::uint64_t images = 0;        ///< rows of image_grid_thw
  std::uint64_t expert_tokens = 0; ///< tokens with routed experts
  number_spread rewards;           ///< of the traces of episodes that are ok
};

/// What is in a recording.
struct recording_summary {
  std::string path;
  std::string source;
  std::uint64_t bytes = 0;
  bool finished = false;                                     ///< the closing index is there
  std::array<std::uint64_t, last_record_kind + 1> records{}; ///< by record_kind
  recording_counts counts;
  std::map<std::string, environment_summary> environments;

  std::vector<recording_damage> damage; ///< the first of them
  std::uint64_t damage_count = 0;
  std::uint64_t bytes_skipped = 0;
  std::optional<torn_tail> torn;
  /// Values that a reader will refuse (mask lengths, parents, rewards): the first messages, and how
  /// many. Not damage: they were written so.
  std::vector<std::string> refused;
  std::uint64_t refused_count = 0;

  /// True if bytes were lost or changed; a torn tail is none.
  bool damaged() const noexcept { return damage_count > 0; }
};

/// Reads a whole recording, every value of it. Errors: those of recording_reader::open.
result<recording_summary> inspect_recording(const std::filesystem::path &path);
/// The same of a reader that has read nothing yet.
recording_summary inspect_recording(recording_reader reader);

/// For a person: several lines.
std::string text_of(const recording_summary &summary);
/// For a program. Source: docs/formats.md, "inspect --json".
json::tree json_of(const recording_summary &summary);

} // namespace millrace
