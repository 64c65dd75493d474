// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "actors/conform/graph_case.hpp"
#include "actors/scorer/verdict.hpp"
#include "schema/sealed_episode.hpp"

namespace millrace {

/// A group on its way: as the assembler and the scorer of a run have it.
struct processed_group {
  std::vector<sealed_episode> episodes;
  body<wire::GroupHeader> header;
  std::vector<trace_verdict> routed; ///< before pruning
  group_verdict verdict;             ///< after
  double scale = 0;                  ///< largest absolute reward of the eligible traces
};

/// Seals, heads and scores the group of a case. An error is a rejected input.
result<processed_group> process(const graph_case &input);

} // namespace millrace
