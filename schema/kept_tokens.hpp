// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "schema/array.hpp"

namespace millrace {

/// The ids that a sampler left to choose from, for n tokens: `counts` int32 [n], how many at each
/// token, and `ids` int32 [sum of counts], token after token. Both or none are there. A token with
/// count 0 has no such list: all ids could be chosen, or no model sampled it. Owner: the message
/// that they were read from.
struct kept_tokens_view {
  const std::optional<array_view> &counts;
  const std::optional<array_view> &ids;
};

/// Both are there or none, of int32 and one dimension; `tokens` counts, none negative, that sum to
/// the number of ids. Reads the counts, not the ids. Errors: bad_value, with the field's name.
status check_kept_counts(const kept_tokens_view &kept, std::uint64_t tokens);

/// The ids are in [0, limit). Precondition: check_kept_counts has passed. Errors: bad_value.
status check_kept_ids(const kept_tokens_view &kept, std::uint32_t limit);

/// How many ids the first `tokens` tokens have. Precondition: check_kept_counts has passed for at
/// least so many.
std::uint64_t kept_ids_of(const array_view &counts, std::uint64_t tokens) noexcept;

} // namespace millrace
