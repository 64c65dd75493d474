// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "actors/scorer/env_config.hpp"
#include "runtime/json.hpp"
#include "schema/episode_encoder.hpp"

namespace millrace {

/// What a graph case assigns to one trace, beside its nodes.
struct trace_assignment {
  std::optional<float> advantage;               ///< one number for all trainable tokens
  std::optional<std::vector<float>> advantages; ///< or one for each
  std::optional<std::vector<std::vector<float>>> reference_logprobs; ///< by trainable branch
  std::optional<std::vector<std::vector<std::uint8_t>>> echo_filter; ///< by trainable branch

  bool scores() const noexcept { return advantage || advantages; }
};

/// The input of a graph case as the program's own types.
struct graph_case {
  env_config env;
  std::string env_name;
  std::vector<frame_data> episodes; ///< each a whole episode; the nodes of a trace stand together
  std::vector<std::vector<trace_assignment>> assignments; ///< [episodes][traces]
};

/// Reads a case. What the program would reject is read as it is. Errors: it is no graph case.
result<graph_case> read_graph_case(const json::value &test);

} // namespace millrace
