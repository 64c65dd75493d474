// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

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
///                                        |
///                                        +--turn--> fetches tokens, asks a model server-->
///                                        answered
///                                        +--has an answer already, or its assembler is lost-->
///                                        (none)
///
/// A model server that is gone ends the run, by name: its groups would all be lost. One that lies
/// costs the group that it lied about.
class scorer : public stage_actor {
public:
  scorer(caf::actor_config &config, const actor_context &context, std::string name,
         std::shared_ptr<const run_config> settings, scorer_peers peers,
         std::shared_ptr<run_counters> counters);

  caf::behavior make_behavior() override;
  /// Lets go of other actors, who may hold this one: a ring would never be destroyed.
  void on_exit() override;

  /// From a model server's client to its scorer.
  struct reference_answered {
    std::uint64_t job = 0;
    std::shared_ptr<const reference_client::answer> what;
  };

private:
  /// A group that waits for its turn.
  struct waiting_group {
    group_complete in;
    body<wire::GroupHeader> header;
    const env_config *env = nullptr;         ///< in settings_
    std::string key{};                       ///< whose state it needs; empty: none
    std::vector<sealed_episode> episodes{};  ///< reference_episodes(), once they are here
    std::vector<reference_prompt> prompts{}; ///< what the model server was asked
  };

  void score(const group_complete &in);
  void take_turn(const score_turn &in);
  void take_hello(const planner_hello &in);
  void take_down(const peer_down &in);
  void finish(const drain &);

  bool end_unscored(const group_complete &in, const wire::GroupHeader &header,
                    const env_config &env);
  void ask_turn(const waiting_group &group);
  void answer(const waiting_group &group, std::optional<answer_link> once,
              const reference_logprobs *reference = nullptr);

  // scorer_reference.cpp: what a model server says of the tokens
  void begin_asking();
  void take_episodes(const episodes_fetched &in);
  void take_reference(const reference_answered &in);
  waiting_group *group_of(std::uint64_t job);
  reference_client &client_of(const env_config &env);
  void refuse(const group_complete &in, const error &why);
  void leave_if_idle();
  void show_wait();

  std::shared_ptr<const run_config> settings_; ///< its environments
  const scorer_peers peers_;
  std::shared_ptr<run_counters> counters_;
  std::map<group_ref, waiting_group> waiting_;
  std::deque<group_ref> queue_;             ///< whose tokens are to be fetched
  std::map<std::uint64_t, group_ref> jobs_; ///< whose tokens are fetched, or at a model server
  std::uint64_t last_job_ = 0;
  std::map<std::string, std::unique_ptr<reference_client>> clients_; ///< by endpoint and model
  planner_claim claim_;                                              ///< of the planner
  bool draining_ = false;
};

} // namespace millrace

MILLRACE_MESSAGE(millrace::scorer::reference_answered)
