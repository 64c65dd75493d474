// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "actors/interfaces.hpp"
#include "actors/run_config.hpp"
#include "actors/run_counters.hpp"

namespace millrace {

/// Scores complete groups, one after the other, from their headers. Any number of scorers work side
/// by side; an answer depends on nothing but its group. A group that cannot be scored ends outside
/// a step, with a reason.
class scorer : public stage_actor {
public:
  scorer(caf::actor_config &config, const actor_context &context, std::uint32_t index,
         std::shared_ptr<const run_config> settings, peer planner,
         std::shared_ptr<run_counters> counters);

  caf::behavior make_behavior() override;

private:
  void score(const group_complete &in);

  std::shared_ptr<const run_config> settings_; ///< its environments
  const peer planner_;
  std::shared_ptr<run_counters> counters_;
};

} // namespace millrace
