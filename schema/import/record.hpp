// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/json.hpp"
#include "schema/episode_encoder.hpp"

namespace millrace {

/// Which group a record belongs to, and which of its episodes it is.
struct record_identity {
  group_key key;
  std::string episode;
  std::uint64_t slot = 0; ///< place among its siblings; those of one slot stay in file order
};

/// Text of one node, for people.
struct imported_text {
  std::uint16_t trace;
  std::uint32_t node;
  std::string role;
  std::string content;
};

/// What a record holds beside its identity.
struct record_content {
  std::uint64_t first_version = 0;
  std::uint64_t last_version = 0;
  bool frozen = false;
  std::vector<node_data> nodes;
  std::vector<trace_result_data> traces;
  std::vector<imported_text> texts;
};

/// How one published format is read. Every function gets the root of a record, an object; errors
/// (bad_value) begin with the path of the field.
struct record_format {
  std::string_view tokens_at; ///< where token ids stand in it, for messages
  /// Whether a record with these fields is of this format.
  bool (*recognises)(const json::value &record);
  /// Whether the episode is for evaluation.
  result<bool> (*is_eval)(const json::value &record);
  /// @param line its line in the file: the id of an episode that has none.
  result<record_identity> (*identify)(const json::value &record, std::uint64_t line);
  /// Why the record says that it failed; nothing if it says that it is fine.
  result<std::optional<std::string>> (*failure)(const json::value &record);
  result<record_content> (*read)(const json::value &record);
  /// Whether a value at this path tells who the record is and what for, and whether import looks at
  /// it at all. What it does not look at may be broken.
  bool (*names_record)(std::string_view path);
  bool (*reads)(std::string_view path);
};

/// Names in records (ids, environments, tasks, agents, roles) are at most this long. Unit: bytes.
inline constexpr std::size_t name_bytes = 4096;

/// Reads a field into `out`, which keeps its value if the field is missing or null.
template <class T> status take(const json::value &from, std::string_view key, T &out) {
  auto found = from.find<T>(key, json::nulls::as_absent);
  if (!found)
    return tl::unexpected(std::move(found).error());
  if (*found)
    out = std::move(**found);
  return {};
}
template <class T>
status take(const json::value &from, std::string_view key, std::optional<T> &out) {
  auto found = from.find<T>(key, json::nulls::as_absent);
  if (!found)
    return tl::unexpected(std::move(found).error());
  out = std::move(*found);
  return {};
}

/// The value at the end of a chain of fields, "run.work.type"; nothing if one of them is missing or
/// null. Errors: a step into what is no object.
result<std::optional<json::value>> find_at(const json::value &from, std::string_view path);

/// A name there, a string or an integer, into `out`, which keeps its value if there is none or an
/// empty one. Errors: another type, over name_bytes.
status take_name(const json::value &from, std::string_view path, std::string &out);

/// What a message's content says: a string as it is, the texts of a list of parts, a line each.
std::string content_text(const json::value &content);

/// One line for a reason: valid UTF-8, no control characters, at most 500 bytes.
std::string reason_text(std::string_view text);

/// check_node for a node that was read at `place`, which stands before the message.
status check_imported(const node_data &node, std::string_view place);

/// True if `path` is `prefix` or lies below it: "run.id" covers "run.id" and "run.id[0]".
bool covers(std::string_view prefix, std::string_view path);

} // namespace millrace
