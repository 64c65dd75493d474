// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "schema/recording.hpp"
#include "schema/sealed_episode.hpp"

namespace millrace {

/// What a group has in a recording.
struct group_count {
  group_key key;
  std::uint32_t size = 0; ///< episodes that it should have; 0: the recording does not say
  std::uint32_t ok = 0;
  std::uint32_t errored = 0;
  std::uint32_t cancelled = 0;
  std::uint32_t rejected = 0;
  std::uint64_t nodes = 0;
  std::uint64_t tokens = 0;

  std::uint32_t episodes() const noexcept { return ok + errored + cancelled + rejected; }
};

/// What a recording holds: numbers that the pipeline did not make, to check a run against. An
/// episode counts once, when its end is there; a later attempt replaces an earlier one.
struct recording_counts {
  std::uint64_t episodes = 0;
  std::uint64_t nodes = 0;
  std::uint64_t tokens = 0;
  std::uint64_t unfinished = 0;       ///< episodes of which there are frames, but not the end
  std::uint64_t repeats = 0;          ///< records of an episode or a frame that was there already
  std::vector<group_count> groups;    ///< in the order of their first record
  std::vector<std::string> conflicts; ///< group sizes that do not agree
};

/// Adds up records as they come.
class recording_tally {
public:
  /// False: a repeat, which counts only as that.
  bool add(const sealed_episode &sealed);
  bool add(const episode_frame &frame);
  void add(const wire::GroupSize &size);
  /// Parses the body of a record, then adds it. Errors: those of the parser; nothing was added.
  status add(record_kind kind, const message &parts);

  recording_counts counts() const;

private:
  struct episode_state {
    std::uint32_t attempt = 0;
    std::uint32_t next_frame = 0;
    bool finished = false;
    wire::EpisodeStatus status = wire::EpisodeStatus::Ok;
    std::uint64_t nodes = 0;
    std::uint64_t tokens = 0;
  };
  struct group_state {
    group_count count; ///< sums are made by counts()
    std::map<std::string, episode_state, std::less<>> episodes;
  };

  group_state &group_of(const wire::GroupKey &key);
  /// The state that this frame adds to; nullptr if it repeats what is there.
  episode_state *open_episode(group_state &group, const wire::EpisodeFrame &head);
  void set_size(group_state &group, std::uint32_t size);

  std::map<group_key, std::size_t> places_;
  std::vector<group_state> groups_;
  std::uint64_t repeats_ = 0;
  std::vector<std::string> conflicts_;
};

/// Reads what is left of a recording and counts. Damage is left out: the reader lists it.
recording_counts count_recording(recording_reader &reader);

/// The closing index as values.
recording_counts counts_of(const wire::RecordingIndex &index);

} // namespace millrace
