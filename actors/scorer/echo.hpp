// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "actors/scorer/env_config.hpp"
#include "actors/scorer/verdict.hpp"

namespace millrace {

/// The roles that an environment's echo weighs, by name; none for another algorithm.
std::vector<echo_role> echo_roles_of(const env_config &config);

/// For each branch of a trace's header whether echo gives it a ce weight: a node counts in the
/// first branch that contains it. The header alone decides. Source: docs/algorithms.md, "echo".
/// @param names the group's role names
std::vector<std::uint8_t> echo_branches(const wire::TraceHeader &trace,
                                        const std::vector<std::string_view> &names,
                                        const std::vector<echo_role> &roles);

} // namespace millrace
