// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "actors/assembler/episode_header.hpp"

namespace millrace {

/// Fills what a branch header says of arrays: experts, image tensors, runs of type ids, image grid.
/// Errors: bad_value for image tensors that do not join (another dtype or trailing shape, a name
/// twice in a node, a grid that is not int64 [images, 3] of small counts) or stand without type
/// ids; too_large.
status add_arrays(branch_header &out, const std::vector<node_view> &nodes, const branch &path);

/// Tokens that the cut at seq_len keeps. A sample that the planner will refuse counts as if it were
/// text. Precondition: arrays and tokens are filled in.
std::uint64_t kept_tokens(const branch_header &branch, std::uint64_t seq_len);

} // namespace millrace
