// SPDX-License-Identifier: Apache-2.0
#include "actors/scorer/algorithm.hpp"

#include <array>

#include "actors/scorer/grpo.hpp"

namespace millrace {

namespace {

/// The advantages that came with the nodes stay as they are.
result<group_score> keep_advantages(std::span<const trace_score_input> traces, const env_config &) {
  group_score out;
  out.advantages.resize(traces.size());
  return out;
}

struct entry {
  std::string_view name;
  scoring_function function;
};
constexpr std::array table{entry{"grpo", grpo}, entry{"none", keep_advantages}};

} // namespace

scoring_function find_algorithm(std::string_view name) noexcept {
  for (const auto &entry : table)
    if (entry.name == name)
      return entry.function;
  return nullptr;
}

std::string_view algorithm_names() noexcept { return "grpo, none"; }

} // namespace millrace
