// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace millrace {

/// What an import did. Every line is in exactly one of ok, errored, rejected, refused, old_format
/// and eval_skipped.
struct import_summary {
  std::string file; ///< as messages name it
  std::uint64_t lines = 0;
  std::uint64_t ok = 0;           ///< episodes that went well
  std::uint64_t errored = 0;      ///< episodes that say that they failed
  std::uint64_t rejected = 0;     ///< not usable; they count in their group as rejected episodes
  std::uint64_t refused = 0;      ///< not usable, and their group is unknown
  std::uint64_t old_format = 0;   ///< lines of verifiers' old results format
  std::uint64_t eval_skipped = 0; ///< episodes for evaluation
  std::uint64_t patched = 0; ///< of ok and errored: lines with broken values that import ignores

  std::uint64_t groups = 0; ///< in the recording, with at least one episode
  std::uint64_t nodes = 0;  ///< over the episodes in the recording, as tokens
  std::uint64_t tokens = 0;

  /// A line that is not as it should be, and why: "traces[0].nodes[3]: logprobs has ...".
  struct note {
    std::uint64_t line;
    std::string text;
  };
  std::vector<note> notes; ///< by line; the first ones only: see import_options::notes
  std::uint64_t note_count = 0;
  std::uint64_t old_format_first = 0; ///< lines of the old format, from 1
  std::uint64_t old_format_last = 0;

  /// Episodes that a run can use or must know of. None: the import has failed.
  std::uint64_t imported() const noexcept { return ok + errored; }

  /// For people: a line for each note ("FILE:12: ..."), then what was imported. Ends with LF.
  std::string text() const;
};

} // namespace millrace
