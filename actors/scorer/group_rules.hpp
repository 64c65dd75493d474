// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "actors/planner/ledger.hpp"
#include "actors/scorer/env_config.hpp"

namespace millrace {

/// How a complete group ends that is not scored, and why, for people.
struct unscored_end {
  group_end end = group_end::stale;
  std::string why;
};

/// Whether its members allow a complete group to be scored. An episode that was cancelled as stale
/// voids it. So does any that failed (errored, cancelled, rejected), if the environment scores
/// groups as a unit. Otherwise those that are left are scored: nothing is returned.
std::optional<unscored_end> find_unscored_end(const wire::GroupHeader &group,
                                              group_scoring scoring);

} // namespace millrace
