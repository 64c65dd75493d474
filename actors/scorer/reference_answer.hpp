// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/json_stream.hpp"
#include "runtime/result.hpp"

namespace millrace {

/// What the ids of our requests begin with. A server may make ids of its own, but those of another
/// request of ours are none.
inline constexpr std::string_view reference_id_prefix = "millrace-";

/// Reads the answer of POST /v1/completions as it comes, and keeps one float for each token of the
/// prompt. Of all that the answer holds it looks at `id` and at choices[0].prompt_logprobs: a list
/// as long as the prompt, null at position 0, and elsewhere an object whose key of the prompt's own
/// token holds its `logprob`; other tokens may stand beside it.
/// Refused, with the position: another length, null, a number that is not finite in float32 or
/// above 0 (a logit), a token that is not the prompt's (the answer is for another request), a key
/// twice, another id of ours, bytes after the end. Errors: bad_value, bad_format.
class prompt_logprobs_reader {
public:
  /// @param prompt not empty; must outlive the reader. @param id what was sent as the request's,
  /// with reference_id_prefix.
  prompt_logprobs_reader(std::span<const std::int32_t> prompt, std::string_view id);

  status feed(std::string_view bytes);
  /// After the last byte. Shape: one for each token of the prompt, the first is 0.0 and no logprob.
  result<std::vector<float>> finish();
  /// A whole JSON value has come.
  bool complete() const noexcept { return stream_.complete(); }

private:
  /// What the value under way is.
  enum class place : std::uint8_t { outside, answer, choices, choice, positions, position, entry };

  status take(const json::piece &in);
  status take_answer(const json::piece &in);
  status take_choices(const json::piece &in);
  status take_choice(const json::piece &in);
  status take_positions(const json::piece &in);
  status take_position(const json::piece &in);
  status take_entry(const json::piece &in);
  status take_id(std::string_view found);
  status take_logprob(const json::piece &in);
  /// Passes over a value that is not wanted.
  void pass(const json::piece &in);
  status once(bool &seen, std::string_view name);
  std::string where() const;

  std::span<const std::int32_t> prompt_;
  std::string id_;
  json::stream_reader stream_;
  place place_ = place::outside;
  std::size_t passing_ = 0; ///< levels of a value that is passed over
  std::string key_;         ///< of the value that comes next, in an object
  bool saw_id_ = false;
  bool saw_choices_ = false;
  bool saw_choice_ = false;
  bool saw_positions_ = false;
  bool saw_token_ = false;   ///< in this position
  bool saw_logprob_ = false; ///< in this entry
  float last_ = 0;           ///< of this entry
  std::vector<float> values_;
};

/// Reads the answer of POST /tokenize as it comes: its `tokens`, a list of ids. Errors: bad_value
/// (none, one that is no id, more than `most`, the key twice), bad_format.
class token_list_reader {
public:
  /// @param most tokens.
  explicit token_list_reader(std::size_t most);

  status feed(std::string_view bytes);
  result<std::vector<std::int32_t>> finish();
  bool complete() const noexcept { return stream_.complete(); }

private:
  status take(const json::piece &in);
  status take_token(const json::piece &in);

  const std::size_t most_;
  json::stream_reader stream_;
  std::size_t depth_ = 0;
  bool wanted_ = false; ///< the value that comes next, or is under way, is `tokens`
  bool seen_ = false;
  std::vector<std::int32_t> tokens_;
};

} // namespace millrace
