// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "actors/graph/branches.hpp"
#include "runtime/json.hpp"
#include "schema/body.hpp"
#include "schema/episode_encoder.hpp"

namespace millrace {

/// A sample as a packing case has it.
struct packing_sample {
  std::string env;
  node_data whole;                ///< all tokens in one node, each with a value
  std::vector<std::uint8_t> mask; ///< the case's own
  std::vector<float> temperatures;
  wire::StreamSpec rl; ///< rules that give the case's streams
  wire::StreamSpec ce;
  wire::StreamSpec ref_kl;
};

/// Errors: it is no sample of a packing case. What the program would reject is read as it is.
result<packing_sample> read_packing_sample(const json::value &in);

/// The same sample as the nodes of one branch, as the program has it. A full array of the case has
/// a value on every token, a node has values on true mask entries only: so each node's mask is all
/// true, and where the case's mask is false the branch has switched it off (as for a turn that an
/// earlier branch trains). A copy would have views into the original, so it only moves.
struct packing_branch {
  explicit packing_branch(episode_frame from) : bytes(std::move(from)) {}
  packing_branch(packing_branch &&) noexcept = default;
  packing_branch &operator=(packing_branch &&) noexcept = default;

  episode_frame bytes;                            ///< what the views point into
  std::vector<std::vector<std::uint64_t>> shapes; ///< of slices of the experts
  std::vector<node_view> nodes;
  branch path;
};

/// Passes a sample through the checks of the door and makes its branch. Errors: it is rejected.
result<packing_branch> make_packing_branch(const packing_sample &sample);

} // namespace millrace
