// SPDX-License-Identifier: Apache-2.0
#include "actors/planner/planner_config.hpp"

namespace millrace {

std::vector<error> batch_config::validate() const {
  if (traces == 0 && tokens == 0)
    return {{errc::bad_config, "batch.traces or batch.tokens must be set: how large is a step?"}};
  if (traces != 0 && tokens != 0)
    return {
        {errc::bad_config,
         fmt::format("batch.traces = {} and batch.tokens = {}: only one counts, set the other to 0",
                     traces, tokens)}};
  return {};
}

} // namespace millrace
