// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "actors/assembler/episode_header.hpp"
#include "schema/sealed_episode.hpp"

namespace millrace {

/// An episode as its group sees it.
struct group_member {
  std::optional<sealed_episode> data; ///< absent if it was refused before it could be sealed
  std::string id;
  std::uint32_t attempt = 0;
  wire::EpisodeStatus status = wire::EpisodeStatus::Ok; ///< Ok: what the episode says of itself
  std::string reason;
};

/// A group, complete or as far as it came.
struct group_members {
  group_key key;
  std::string source;
  std::uint64_t ordinal = 0;          ///< position of the group's first record in its source
  std::uint32_t size = 0;             ///< episodes that the group should have
  std::vector<group_member> episodes; ///< in the order of their first record
};

/// What a group header says beside its episodes.
struct group_place {
  group_key key;
  std::string source;
  std::uint64_t ordinal = 0;
  std::uint32_t size = 0;
};

/// The header of one member. A status other than Ok stands over what the episode says of itself.
/// @param seq_len tokens that a sample keeps, at least 1.
/// @param rules as for an episode.
episode_header make_episode_header(const group_member &member, std::uint64_t seq_len,
                                   const filter_rules &rules = {});

/// Joins the headers of a group's episodes into a GroupHeader body. An Ok episode that it cannot
/// hold any more (its 1 GiB, its 256 roles) becomes Rejected. Errors: too_large if it cannot even
/// list the episodes.
result<frame> make_group_header(const group_place &place, std::span<const episode_header> episodes);

/// Both at once. Errors: too_large.
result<frame> make_group_header(const group_members &group, std::uint64_t seq_len,
                                const filter_rules &rules = {});

} // namespace millrace
