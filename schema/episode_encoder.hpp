// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "schema/episode.hpp"

namespace millrace {

/// A raw array to be sent. Shape: `shape`, row-major, little-endian; bytes.size() is its size.
struct array_data {
  std::string name; ///< empty for routed experts
  dtype type = dtype::uint8;
  std::vector<std::uint64_t> shape;
  frame bytes;
};

/// A node as values; fields as in episode.fbs.
struct node_data {
  std::uint16_t trace = 0;
  std::uint32_t index = 0;
  std::int32_t parent = -1;
  std::string role;
  bool sampled = false;
  std::vector<std::int32_t> token_ids;
  std::vector<std::uint8_t> mask;
  std::vector<std::uint8_t> is_content;
  std::vector<float> logprobs;
  std::optional<std::vector<float>> advantages;
  std::optional<std::vector<float>> reference_logprobs;
  std::optional<std::vector<float>> rl_weights;
  std::optional<std::vector<float>> ce_weights;
  std::optional<std::vector<float>> ref_kl_weights;
  std::optional<std::vector<std::uint8_t>> mm_token_type_ids;
  std::optional<array_data> routed_experts;
  std::vector<array_data> tensors;
  std::optional<array_data> kept_counts{};
  std::optional<array_data> kept_ids{};
  std::optional<std::vector<std::uint8_t>> echo_mask{};
};

struct trace_result_data {
  std::string id;
  std::string agent;
  bool agent_trainable = true;
  bool ok = true;
  double reward = 0;
  std::uint64_t output_tokens = 0;
  std::uint64_t total_tokens = 0;
  std::uint32_t turns = 0;
  std::vector<std::int32_t> hint_token_ids{}; ///< empty: none
  std::string hint{};                         ///< empty: none
};

/// The end of an episode. Frame, node and token counts are filled in by who knows them:
/// count_whole_episode().
struct finish_data {
  wire::EpisodeStatus status = wire::EpisodeStatus::Ok;
  std::string reason;
  std::uint32_t frames = 1;
  std::uint32_t nodes = 0;
  std::uint64_t tokens = 0;
  std::vector<trace_result_data> traces;
  wire::CancelReason cancel_reason = wire::CancelReason::Unspecified;
};

struct frame_data {
  group_key key;
  std::string episode;
  std::uint32_t attempt = 0;
  std::uint32_t frame = 0;
  std::uint32_t group_size = 0;
  bool eval = false;
  std::uint64_t first_version = 0;
  std::uint64_t last_version = 0;
  bool frozen = false;
  std::vector<node_data> nodes;
  std::optional<finish_data> finish;
};

/// Fills frames, nodes and tokens of `finish` for an episode that is this one frame, and the counts
/// of its traces: output_tokens (true mask entries of sampled nodes), total_tokens, turns (sampled
/// nodes).
void count_whole_episode(frame_data &episode);

/// One message: the FlatBuffer and the array parts. Values are not checked: who reads them does.
/// Errors: too_large, before anything is built; bad_argument for more than 255 roles.
result<message> encode(const frame_data &frame);

} // namespace millrace
