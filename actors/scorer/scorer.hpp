// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "actors/interfaces.hpp"
#include "actors/run_config.hpp"
#include "actors/run_counters.hpp"
#include "actors/scorer/annotate.hpp"
#include "actors/scorer/reference_client.hpp"

namespace millrace {

struct scorer_peers {
  peer planner;
  peer supervisor;
};

/// Scores complete groups. Any number of scorers work side by side; an answer depends on nothing
/// but its group, its environment's config and, for algorithms with a state, on what the planner
/// hands out with the group's turn: a scorer remembers nothing from group to group. A group that
/// cannot be scored ends outside a step, with a reason.
///
/// A group:  (none) --needs nothing else--> answered
///             +--asks for its turn--> waiting --turn--> answered
///                                        +--has an answer already, or its assembler is lost-->
///                                        (none)
class scorer : public stage_actor {
public:
  scorer(caf::actor_config &config, const actor_context &context, std::string name,
         std::shared_ptr<const run_config> settings, scorer_peers peers,
         std::shared_ptr<run_counters> counters);

  caf::behavior make_behavior() override;
  /// Lets go of other actors, who may hold this one: a ring would never be destroyed.
  void on_exit() override { waiting_.clear(); }

private:
  /// A group that waits for its turn.
  struct waiting_group {
    group_complete in;
    body<wire::GroupHeader> header;
    const env_config *env = nullptr; ///< in settings_
    std::string key{};               ///< whose state it needs; empty: none
  };

  void score(const group_complete &in);
  void take_turn(const score_turn &in);
  void take_hello(const planner_hello &in);
  void take_down(const peer_down &in);
  void finish(const drain &);

  bool end_unscored(const group_complete &in, const wire::GroupHeader &header,
                    const env_config &env);
  void ask_turn(const waiting_group &group);
  void answer(const waiting_group &group, std::optional<answer_link> once);
  void refuse(const group_complete &in, const error &why);
  void leave_if_idle();
  void show_wait();

  std::shared_ptr<const run_config> settings_; ///< its environments
  const scorer_peers peers_;
  std::shared_ptr<run_counters> counters_;
  std::map<group_ref, waiting_group> waiting_;
  planner_claim claim_; ///< of the planner
  bool draining_ = false;
};

} // namespace millrace
