// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "actors/interfaces.hpp"
#include "actors/run_config.hpp"
#include "actors/run_counters.hpp"

namespace millrace {

struct scorer_peers {
  peer planner;
  peer supervisor;
};

/// Scores complete groups, one after the other, from their headers. Any number of scorers work side
/// by side; an answer depends on nothing but its group. A group that cannot be scored ends outside
/// a step, with a reason.
class scorer : public stage_actor {
public:
  scorer(caf::actor_config &config, const actor_context &context, std::string name,
         std::shared_ptr<const run_config> settings, scorer_peers peers,
         std::shared_ptr<run_counters> counters);

  caf::behavior make_behavior() override;

private:
  void score(const group_complete &in);
  void take_down(const peer_down &in);
  void finish(const drain &);

  std::shared_ptr<const run_config> settings_; ///< its environments
  const scorer_peers peers_;
  std::shared_ptr<run_counters> counters_;
};

} // namespace millrace
