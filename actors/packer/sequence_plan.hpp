// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "actors/packer/gather.hpp"

namespace millrace {

/// The kept part of one node on a sample's path.
struct piece {
  const node_view *node = nullptr;
  std::uint32_t tokens = 0; ///< kept: the first ones
  std::uint32_t values = 0; ///< true mask entries among them
  bool mask_off = false;    ///< as in branch
  bool rl_off = false;
  bool ce_off = false;
  bool ref_kl_off = false;
  float echo = 0; ///< ce weight from echo; 0: none
};

/// The float streams of a micro batch.
enum class stream_id : std::uint8_t {
  logprobs,
  temperatures,
  advantages,
  ref_logprobs,
  rl,
  ce,
  ref_kl,
};
inline constexpr std::size_t stream_count = 7;

/// How one sequence's share of one stream goes on the wire.
struct stream_part {
  bool present = false;
  wire::StreamEncoding encoding = wire::StreamEncoding::Everywhere;
  /// The value of a constant encoding. Tokens: the value on trainable tokens, if on_mask. Valued,
  /// for rl: the value that is not pruned.
  float value = 0;
  bool on_mask = false; ///< Tokens: trainable tokens get `value`
  bool pruned = false;  ///< Tokens: trainable tokens with advantage 0 get 0.0
};

/// What one sample becomes: a sequence of the micro batch.
struct sequence_plan {
  const sample_source *source = nullptr;
  std::span<const piece> pieces;
  std::uint32_t tokens = 0;
  std::uint32_t values = 0; ///< valued tokens: true entries of the node masks
  bool type_ids = false;    ///< some node of the branch has mm_token_type_ids
  bool kept_tokens = false; ///< some node of the branch has kept tokens
  std::array<stream_part, stream_count> streams;

  stream_part &at(stream_id id) noexcept { return streams[static_cast<std::size_t>(id)]; }
  const stream_part &at(stream_id id) const noexcept {
    return streams[static_cast<std::size_t>(id)];
  }
  /// Number of floats that a part takes.
  std::size_t floats(const stream_part &part) const noexcept;
};

/// The weights that came with a node for stream rl, ce or ref_kl, and whether a piece's are off.
const std::optional<std::span<const float>> &weights_of(const node_view &node, stream_id id);
bool weights_off(const piece &p, stream_id id) noexcept;

/// Cuts the path into pieces, appended to `pieces`, and chooses the smallest encoding that each
/// rule allows. Precondition: `pieces` has room for the whole path: it must not move.
/// Errors: bad_value, see gather().
result<sequence_plan> plan_sequence(const sample_source &source, bool dummy,
                                    std::vector<piece> &pieces);

/// Gives each sequence a part of every stream that another one has: rl weights 1.0, else 0.0.
void fill_absent_streams(std::span<sequence_plan> sequences);

} // namespace millrace
