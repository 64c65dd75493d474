// SPDX-License-Identifier: Apache-2.0
#include "actors/scorer/gate.hpp"

namespace millrace {

bool gate_admits(const wire::GroupHeader &group, const scored_group &scores,
                 const gate_config &gate) {
  if (!gate.reject_min || !gate.reject_max)
    return true;
  bool any = false;
  for (const auto &score : scores.traces) {
    const auto &trace = trace_of(group, score);
    if (!score.advantage && trace.advantage_count() == 0)
      continue;
    any = true;
    const auto smallest = static_cast<double>(score.advantage.value_or(trace.advantage_min()));
    const auto largest = static_cast<double>(score.advantage.value_or(trace.advantage_max()));
    if (smallest < *gate.reject_min || largest > *gate.reject_max)
      return true;
  }
  return !any;
}

} // namespace millrace
