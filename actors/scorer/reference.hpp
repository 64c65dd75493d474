// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "actors/scorer/verdict.hpp"
#include "schema/node.hpp"

namespace millrace {

/// What a reference policy says of one trace.
struct trace_reference {
  std::uint32_t episode = 0; ///< index into the header's episodes
  std::uint32_t trace = 0;   ///< and into that one's traces
  /// All nodes of the trace, as sealed_episode::nodes gives them: their masks say which values
  /// count. Owner: the episode, which the caller keeps.
  std::vector<node_view> nodes;
  /// For each trainable branch, in order: one natural log of a probability for each token of the
  /// branch. NaN where there is none, as at position 0 of a prompt: that is only an error where the
  /// value is needed.
  std::vector<std::vector<float>> branches;
};

/// One for each of traces_without_reference(), in that order.
struct reference_logprobs {
  std::vector<trace_reference> traces;
};

/// The eligible traces of which a trainable node came without reference logprobs: what a reference
/// policy must be asked for, by episode, then trace.
std::vector<trace_place> traces_without_reference(const wire::GroupHeader &group);

/// True if a trainable node of the trace came without reference logprobs.
bool lacks_reference(const wire::TraceHeader &trace) noexcept;

/// Values that a trace takes from a reference policy: those of the trainable tokens of each node
/// that came without, in node order.
struct assigned_reference {
  trace_place place;
  std::vector<float> values;
};

/// Takes the values at the true mask entries of the nodes that lack their own; the first branch
/// wins. Source: docs/algorithms.md, "Credit". Errors: bad_value, naming counts, trace, leaf and
/// position: for other traces than asked for, another number of branches or tokens, nodes that are
/// not those of the header, and a needed value that is not finite.
result<std::vector<assigned_reference>> assign_reference(const wire::GroupHeader &group,
                                                         const reference_logprobs &reference);

} // namespace millrace
