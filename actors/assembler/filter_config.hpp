// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "runtime/result.hpp"

namespace millrace {

/// What becomes of a trace in which a filter finds something.
enum class filter_action : std::uint8_t {
  off,   ///< nobody looks
  count, ///< it is counted, and trains all the same
  drop   ///< its samples train nothing; it still counts in its group's baseline
};

/// A rare token that was very unlikely when it was sampled. Config keys:
/// env.NAME.filter.gibberish.*.
struct gibberish_filter {
  filter_action action = filter_action::off;

  /// Ids above it are rare: most vocabularies list tokens by how common they are. Range: 0 to
  /// 2,147,483,647, below vocab_size. Default: 100,000. Less: more tokens are looked at, and more
  /// that are only unusual are found.
  std::uint32_t token_id_threshold = 100'000;

  /// Unit: nats. How far below -log(vocab_size), the logprob of a blind guess, the token's must be.
  /// Range: -100 to 100. Default: 2. More: fewer finds.
  double logprob_offset = 2.0;
};

/// A long run of tokens that were nearly certain, as in a loop. Config keys:
/// env.NAME.filter.repetition.*.
struct repetition_filter {
  filter_action action = filter_action::off;

  /// Unit: tokens. Length of the run. Range: 1 to 2,147,483,647. Default: 3,000. Less: long
  /// quotations are found as well.
  std::uint32_t window = 3'000;

  /// The probability of each of its tokens is above it. Range: 0 to 1. Default: 0.99. Less: more
  /// finds.
  double prob_threshold = 0.99;
};

/// Both filters of an environment. Source: docs/algorithms.md, "Filters".
struct filter_config {
  gibberish_filter gibberish;
  repetition_filter repetition;

  /// Ranges, and what needs the model's vocabulary: all that is broken, with the keys' full names.
  /// @param section where its keys stand: "env.NAME" or "env_default".
  std::vector<error> validate(std::string_view section, std::uint32_t vocab_size) const;
};

} // namespace millrace
