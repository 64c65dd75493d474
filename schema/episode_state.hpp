// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace millrace {

/// What became of an episode: the first that applies. The numbers stand in the planner's log:
/// append-only.
enum class episode_state : std::uint8_t {
  trained,       ///< at least one of its samples is in a trained step
  rolled_back,   ///< it was trained in a step that is lost
  truncated,     ///< all trainable tokens of its kept samples were cut off at seq_len
  gated,         ///< the gate rejected its group
  pruned,        ///< all its samples, in a group that the gate admitted
  stale,         ///< too old when its step was cut
  group_dropped, ///< scored as a unit, and a sibling failed
  filtered,      ///< a filter refused it
  ineligible,    ///< no trainable token, or no trainable agent
  expired,       ///< its group never completed
  cancelled,     ///< given up by its source
  errored,       ///< failed at its source
  rejected,      ///< refused by an importer, a reader or a later check
  eval,          ///< not for training
  held,          ///< still under way, or left over when the run ended
};
inline constexpr std::size_t episode_state_count = 15;

/// "trained", "rolled_back" and so on. Precondition: it is one of them.
std::string_view name_of(episode_state state) noexcept;

} // namespace millrace
