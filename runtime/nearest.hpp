// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

namespace millrace {

/// Insertions, deletions and replacements that turn `a` into `b`. Unit: bytes.
std::size_t edit_distance(std::string_view a, std::string_view b);

/// The word that someone who wrote `text` most likely meant: the nearest by edit distance, the
/// first of several; nothing if all differ in more than two bytes and more than a third of `text`.
std::optional<std::string_view> nearest(std::string_view text,
                                        std::span<const std::string_view> words);

} // namespace millrace
