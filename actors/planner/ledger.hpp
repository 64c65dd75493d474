// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "runtime/digest.hpp"
#include "schema/body.hpp"
#include "schema/episode_state.hpp"
#include "schema/log_records.hpp"

namespace millrace {

/// A kept sample of a group: where it is, and what the planner did with it.
struct sample_record {
  enum class fate : std::uint8_t { waiting, packed, cut, rejected, stale };

  std::uint32_t episode = 0; ///< indices into the group's header
  std::uint32_t trace = 0;
  std::uint32_t branch = 0;
  std::uint64_t tokens = 0;               ///< of the branch
  std::uint64_t trainable_in_seq_len = 0; ///< trainable tokens that the cut at seq_len leaves
  std::uint64_t counted = 0;              ///< tokens, at most seq_len: what batch.tokens counts
  std::uint64_t kept = 0;                 ///< tokens in a micro batch, once it is packed
  fate outcome = fate::waiting;
};

/// How a group ended.
enum class group_end : std::uint8_t {
  settled,
  expired,  ///< data ended before it was complete
  unscored, ///< its scorer refused it
  held,
  stale,   ///< its source gave an episode of it up as stale
  dropped, ///< it is scored as a unit, and one of its episodes failed
  overdue  ///< its deadline passed before it was complete
};

/// Where every episode went, and every sample. Source: docs/architecture.md, "The ledger".
struct ledger {
  struct sample_row {
    std::uint64_t samples = 0;
    std::uint64_t tokens = 0; ///< of the branches; a trained sample counts those in its micro batch
  };

  std::array<std::uint64_t, episode_state_count> episodes{};
  std::array<sample_row, episode_state_count> samples{};
  /// What it has of one group, small: a run may have millions.
  struct group_row {
    digest128 key; ///< digest_of its key
    std::uint64_t ordinal = 0;
    std::uint32_t source = 0;
    std::uint32_t episodes = 0;
  };

  std::uint64_t cut_tokens = 0; ///< cut off samples that were packed
  std::uint64_t groups = 0;
  std::uint64_t longest_stale = 0; ///< tokens of the longest sample that was too old
  /// Groups that their deadline closed, and how many episodes they had by then.
  std::vector<std::pair<group_key, std::uint64_t>> overdue;
  std::uint64_t gibberish = 0; ///< traces in which that filter found something
  std::uint64_t repetition = 0;
  std::vector<group_row> by_group; ///< in the order of add()

  std::uint64_t total() const noexcept;
  std::uint64_t &operator[](episode_state state) noexcept {
    return episodes[static_cast<std::size_t>(state)];
  }
  std::uint64_t operator[](episode_state state) const noexcept {
    return episodes[static_cast<std::size_t>(state)];
  }

  void add(const log_group &group);
};

/// Names a group in less space.
digest128 digest_of(const group_key &key);

/// What a group came to, for the log: the state of every episode and of every sample that its
/// scorer listed. `why` stays empty.
/// @param annotations null if nobody scored it.
/// @param kept the samples that the scorer kept, in any order.
log_group group_entry(const wire::GroupHeader &header, const wire::GroupAnnotations *annotations,
                      std::span<const sample_record> kept, group_end end);

/// All that is in one state of the group is in another now.
void change_state(log_group &group, episode_state from, episode_state to);

/// The state of each episode of a group, by index. Parameters as for group_entry.
std::vector<episode_state> states_of(const wire::GroupHeader &header,
                                     const wire::GroupAnnotations *annotations,
                                     std::span<const sample_record> kept, group_end end);

} // namespace millrace
