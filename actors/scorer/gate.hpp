// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "actors/scorer/env_config.hpp"
#include "actors/scorer/verdict.hpp"

namespace millrace {

/// False exactly if a gate is set, the group has advantages, and all of them lie within its bounds,
/// both included. Source: docs/algorithms.md, "Gate".
bool gate_admits(const wire::GroupHeader &group, const scored_group &scores,
                 const gate_config &gate);

} // namespace millrace
