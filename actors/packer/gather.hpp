// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "actors/graph/branches.hpp"
#include "runtime/frame.hpp"
#include "runtime/result.hpp"
#include "schema/body.hpp"
#include "schema/node.hpp"

namespace millrace {

/// One sample of a bin: which tokens, and how its streams are made. Owner: the caller keeps nodes,
/// path and env alive until gather() is back. Source: schema/group.fbs for the rules.
struct sample_source {
  std::span<const node_view> nodes{}; ///< all nodes of the trace
  /// The ce weight that echo gives to each node's tokens, 0 for none (echo_weights); empty: no
  /// echo. The path's ce_off must know of them.
  std::span<const float> echo{};
  const branch *path = nullptr; ///< which of them, root first, and what is off
  std::uint32_t tokens = 0;     ///< kept: the first ones of the branch, at least 1
  std::uint32_t images = 0;     ///< kept: the first ones of the branch, if it was cut

  wire::AdvantageRule advantage_rule = wire::AdvantageRule::Nodes;
  float advantage = 0; ///< for AdvantageRule::Constant
  wire::StreamSpec rl{};
  wire::StreamSpec ce{};
  wire::StreamSpec ref_kl{};
  bool prune_rl = false; ///< rl becomes 0.0 on trainable tokens whose advantage is 0

  float temperature = 1; ///< of every token
  std::string_view env{};
  wire::Origin origin{}; ///< for reports; its `cut` is filled in by gather()
  float reward = 0;      ///< of the trace, for reports
};

/// One micro batch to be made. Samples are joined in this order.
struct bin {
  std::uint64_t step = 0;
  std::uint32_t rank = 0;
  std::uint32_t index = 0;
  bool dummy = false;        ///< nothing is trainable, no advantages, no weight streams
  std::uint32_t padding = 0; ///< tokens of padding after the last sample
  std::vector<sample_source> samples{};
};

/// Gathers the node spans of a bin into one message: a wire::MicroBatch and the parts of its raw
/// arrays. Token ids, masks and compact arrays are read once and written once, into memory that
/// `meter` counts and that becomes the frame. Presence and pruning of a stream look at the whole
/// branch, values are then cut with the tokens. Source: docs/algorithms.md, "From graph to samples"
/// and "Packing". Precondition: the elements of the nodes were checked at the door. Thread: any,
/// pure.
/// Errors: too_large before anything is built; bad_value if nodes, experts or images of the samples
/// do not fit each other or what is to be kept.
result<message> gather(const bin &plan, const std::shared_ptr<memory_meter> &meter = nullptr);

} // namespace millrace
