// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "actors/planner/ledger.hpp"
#include "schema/recording_counts.hpp"

namespace millrace {

/// A group of which the ledger has another number of episodes than its source.
struct group_difference {
  std::string group; ///< its key, for people; of one that the source does not have, its ordinal
  std::uint64_t counted = 0;
  std::uint64_t expected = 0;
};

/// The first groups, in the order of the source and then of the ledger, that do not agree.
/// One that its deadline closed may have fewer: what came too late is in no state.
/// @param expected counted without the pipeline.
std::vector<group_difference> differing_groups(const ledger &entries,
                                               const recording_counts &expected, std::size_t most);

} // namespace millrace
