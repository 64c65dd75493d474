// SPDX-License-Identifier: Apache-2.0
#include "schema/episode_state.hpp"

#include <array>

namespace millrace {

namespace {

constexpr std::array<std::string_view, episode_state_count> names{
    "trained",   "rolled_back",   "truncated", "gated",      "pruned",
    "stale",     "group_dropped", "filtered",  "ineligible", "expired",
    "cancelled", "errored",       "rejected",  "eval",       "held"};
static_assert(static_cast<std::size_t>(episode_state::held) + 1 == names.size());

} // namespace

std::string_view name_of(episode_state state) noexcept {
  return names[static_cast<std::size_t>(state)];
}

} // namespace millrace
