// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "actors/assembler/filters.hpp"
#include "actors/graph/branches.hpp"
#include "schema/sealed_episode.hpp"

namespace millrace {

/// An array over one branch: the first axis is summed over its nodes.
struct array_shape {
  std::string name; ///< empty for routed experts
  dtype type = dtype::uint8;
  std::vector<std::uint64_t> shape;
};

/// What later stages need of a trainable branch; fields as in group.fbs, BranchHeader.
struct branch_header {
  std::uint32_t leaf = 0;
  std::uint64_t tokens = 0;
  std::uint64_t trainable = 0;
  std::uint64_t trainable_in_seq_len = 0;
  bool rl_nonzero = false;
  bool rl_nonzero_on_mask = false;
  bool ce_nonzero = false;
  bool ref_kl_nonzero = false;
  std::optional<array_shape> routed_experts;
  std::vector<array_shape> tensors; ///< by name, ascending
  std::vector<std::uint32_t> image_runs;
  std::vector<std::uint64_t> image_grid_thw;
  bool type_ids = false;
  bool advantages = false;
  bool zero_advantage_on_mask = false;
  bool nonzero_advantage_on_mask = false;
  bool rl_on_zero_advantage = false;
  bool rl_on_nonzero_advantage = false;
  bool reference_logprobs = false;
};

/// Fields as in group.fbs, TraceHeader.
struct trace_header {
  std::string id;
  std::string agent;
  bool agent_trainable = true;
  bool ok = true;
  double reward = 0;
  std::uint64_t output_tokens = 0;
  std::uint64_t total_tokens = 0;
  std::uint32_t turns = 0;
  std::uint64_t trainable_tokens = 0;
  std::vector<std::int32_t> node_parents;
  std::vector<std::uint8_t> node_roles; ///< into episode_header::roles
  std::vector<std::uint8_t> node_flags;
  std::vector<std::uint32_t> node_tokens;
  std::vector<std::uint32_t> node_trainable;
  std::vector<branch_header> branches;
  std::uint64_t advantage_count = 0;
  float advantage_min = 0;
  float advantage_max = 0;
  std::uint8_t filters = 0;
};

/// What later stages need of an episode, without its tokens; fields as in group.fbs, EpisodeHeader.
struct episode_header {
  std::string id;
  std::uint32_t attempt = 0;
  wire::EpisodeStatus status = wire::EpisodeStatus::Ok;
  std::string reason;
  wire::CancelReason cancel_reason = wire::CancelReason::Unspecified;
  bool eval = false;
  std::uint64_t first_version = 0;
  std::uint64_t last_version = 0;
  bool frozen = false;
  std::uint64_t bytes = 0;
  std::uint64_t tokens = 0;
  std::vector<std::string> roles;
  std::vector<trace_header> traces;
};

/// Reads what the header needs, once, when an episode is sealed. An Ok episode that cannot become
/// samples (experts or image tensors of a branch that do not join, a reward beyond float32, paths
/// over the limit) becomes Rejected, with a reason that names trace, node and field, and no traces.
/// Precondition: check_elements has passed.
/// @param seq_len tokens that a sample keeps, at least 1.
/// @param rules what the filters look for in traces that can train.
episode_header make_episode_header(const sealed_episode &episode, std::uint64_t seq_len,
                                   const filter_rules &rules = {});

/// The facts of one trainable branch. Errors: bad_value, too_large.
/// @param shapes those of `nodes`, made once for all branches
result<branch_header> make_branch_header(const std::vector<node_view> &nodes,
                                         const std::vector<node_shape> &shapes, const branch &path,
                                         std::uint64_t seq_len);

/// A node with tokens whose experts have another dtype or trailing shape than those of a node
/// before it on a branch is an error. Nodes without tokens are left out. Errors: bad_value.
status check_experts(const std::vector<node_view> &nodes);

} // namespace millrace
