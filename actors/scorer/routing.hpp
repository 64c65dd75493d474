// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "actors/scorer/echo.hpp"
#include "actors/scorer/env_config.hpp"
#include "actors/scorer/verdict.hpp"

namespace millrace {

/// Which streams each sample of the group has, before pruning; all samples are kept. Source:
/// docs/algorithms.md, "Routing".
/// @param loss never automatic
/// @param echo the roles that echo weighs
std::vector<trace_verdict> route(const wire::GroupHeader &group, const scored_group &scores,
                                 action_loss loss, const std::vector<echo_role> &echo);

} // namespace millrace
