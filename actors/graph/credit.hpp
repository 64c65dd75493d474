// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "actors/graph/branches.hpp"
#include "runtime/result.hpp"
#include "schema/node.hpp"

namespace millrace {

/// The compact values of each node of a trace: one for each true mask entry, or none.
using node_values = std::vector<std::optional<std::vector<float>>>;

/// The advantages of a trace after `value` went to every trainable token; nodes without one keep
/// what they had. Errors: bad_value if the mask of a node with a true entry is not as long as its
/// tokens.
result<node_values> assign_advantages(std::span<const node_view> nodes, float value);

/// The same with a value for each trainable token, in node order. Errors: bad_value, also if there
/// are not as many values as trainable tokens.
result<node_values> assign_advantages(std::span<const node_view> nodes,
                                      std::span<const float> values);

/// The reference logprobs of a trace after each trainable branch gave its nodes those at their true
/// positions. A node that has some already keeps them; the first branch wins.
/// @param branches one list for each trainable branch of `graph`, one value for each of its tokens.
/// Errors: bad_value for another number of lists or another length.
result<node_values> assign_reference_logprobs(std::span<const node_view> nodes,
                                              const trace_graph &graph,
                                              std::span<const std::vector<float>> branches);

/// The mean of the nonzero values of a trace; 0 if there are only zeros, nothing without values.
std::optional<double> scalar_advantage(const node_values &advantages);

} // namespace millrace
