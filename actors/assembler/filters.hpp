// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "actors/assembler/filter_config.hpp"
#include "schema/node.hpp"

namespace millrace {

/// The filters of an environment that are not off, with the bounds that they compare float32
/// logprobs with: the comparison comes out as it would in double.
struct filter_rules {
  struct rare_token {
    std::int32_t id_above = 0;
    float logprob_below = 0;
  };
  struct certain_run {
    std::uint64_t window = 0; ///< at least 1
    float logprob_above = 0;
  };
  std::optional<rare_token> gibberish;
  std::optional<certain_run> repetition;
};

/// @param vocab_size at least 1.
filter_rules rules_of(const filter_config &config, std::uint32_t vocab_size);

/// What the filters find in a trace: bits of wire::FilterFlag. A run goes on over the nodes of a
/// path, from the root down; tokens that are not trainable neither count nor end it. Reads each
/// token at most twice, most logprobs not at all. Source: docs/algorithms.md, "Filters".
/// Precondition: the nodes have passed check_node, every parent comes before its children.
std::uint8_t filter_trace(std::span<const node_view> nodes, const filter_rules &rules);

/// Some trainable token has an id above and a logprob below the bounds.
bool has_rare_token(const node_view &node, const filter_rules::rare_token &rule) noexcept;

/// How a run of certain tokens goes through some logprobs.
struct run_state {
  bool found = false;     ///< the window was reached
  std::uint64_t tail = 0; ///< length of the run that ends with the last logprob; 0 if found
};
/// @param before length of the run that ends before the first of them.
run_state find_run(std::span<const float> logprobs, std::uint64_t before,
                   const filter_rules::certain_run &rule) noexcept;

/// Bits of the filters whose finds are dropped.
std::uint8_t dropping_filters(const filter_config &config) noexcept;

} // namespace millrace
