// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <tuple>
#include <vector>

#include "actors/packer/gather.hpp"
#include "schema/sealed_episode.hpp"

namespace millrace {

/// What a packer has fetched of one group.
struct fetched_group {
  body<wire::GroupAnnotations> annotations;
  std::map<std::uint32_t, sealed_episode> episodes; ///< by index in the group's header
};

/// A bin ready to be gathered, and the traces that its samples point into. Moving it keeps them
/// valid.
struct bin_sources {
  struct trace {
    std::vector<node_view> nodes; ///< reference logprobs may lie in the group's annotations
    trace_graph graph;
    std::vector<float> echo; ///< sample_source::echo
  };
  /// By group (index into BinPlan.groups), episode, trace.
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, trace> traces;
  bin plan;
};

/// Turns a plan of indices into spans, without copying a value. Pure. Owner: the caller keeps
/// `groups` while the result is used.
/// @param groups in the order of BinPlan.groups.
/// Errors: bad_value if a piece points at something that is not there, or if a trace has not as
/// many reference logprobs as it needs; too_large as branches_of.
result<bin_sources> make_bin_sources(const wire::BinPlan &plan,
                                     std::span<const fetched_group> groups);

/// The episodes of each group that a plan needs, ascending; by index into BinPlan.groups.
/// Errors: bad_value if a piece names a group that the plan does not list.
result<std::vector<std::vector<std::uint32_t>>> episodes_needed(const wire::BinPlan &plan);

} // namespace millrace
