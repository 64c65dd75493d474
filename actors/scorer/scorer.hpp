// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/interfaces.hpp"
#include "actors/leader.hpp"
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
///                                        +--turn, it needs a reference--> queued --a job is
///                                        free--> fetches tokens, asks a model server--> answered
///                                        +--has an answer already, or its assembler is lost-->
///                                        (none)
///
/// A model server that is gone, or refuses every request, ends the run, by name: its groups would
/// all be lost. One that lies costs the group that it lied about.
class scorer : public stage_actor {
public:
  /// Asks a model server about a group of this environment, as reference_client::ask() does.
  using ask_server = std::function<void(const env_config &, std::vector<reference_prompt>,
                                        reference_client::done)>;

  /// @param ask for tests; none: clients of its own, one for each server.
  scorer(caf::actor_config &config, const actor_context &context, std::string name,
         std::shared_ptr<const run_config> settings, scorer_peers peers,
         std::shared_ptr<run_counters> counters, ask_server ask = {});

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
    const env_config *env = nullptr; ///< in settings_
    std::string key{};               ///< whose state it needs; empty: none
    bool queued = false;             ///< it has its turn, and waits for a job
    std::uint64_t job = 0;           ///< of jobs_; 0: none
  };
  /// A group whose tokens are fetched, or at a model server. It outlives a group that is given up.
  struct reference_job {
    group_ref group;
    peer assembler;                          ///< who was asked for the tokens
    std::string server{};                    ///< who is asked; empty: the tokens are not here yet
    std::vector<sealed_episode> episodes{};  ///< reference_episodes()
    std::vector<reference_prompt> prompts{}; ///< their places alone
  };

  void score(const group_complete &in);
  void take_turn(const score_turn &in);
  void take_hello(const planner_hello &in);
  void take_down(const peer_down &in);
  void finish(const drain &);

  bool end_unscored(const group_complete &in, const wire::GroupHeader &header,
                    const env_config &env);
  const peer &planner_of(const group_complete &in) const;
  void ask_turn(const waiting_group &group);
  void answer(const waiting_group &group, std::optional<answer_link> once,
              const reference_logprobs *reference = nullptr);

  // scorer_reference.cpp: what a model server says of the tokens
  void enqueue(waiting_group &group);
  void begin_asking();
  void take_episodes(const episodes_fetched &in);
  void take_reference(const reference_answered &in);
  waiting_group *group_of(std::uint64_t job);
  void end_job(std::uint64_t job);
  void ask_own_client(const env_config &env, std::vector<reference_prompt> prompts,
                      reference_client::done then);
  void refuse(const group_complete &in, const error &why);
  void leave_if_idle();
  void show_wait();

  std::shared_ptr<const run_config> settings_; ///< its environments
  const scorer_peers peers_;
  leader planner_{peers_.planner};
  std::shared_ptr<run_counters> counters_;
  ask_server ask_;
  std::map<group_ref, waiting_group> waiting_;
  std::deque<group_ref> queue_; ///< whose tokens are to be fetched; some were given up
  std::map<std::uint64_t, reference_job> jobs_;
  std::uint64_t last_job_ = 0;
  std::map<std::string, std::unique_ptr<reference_client>> clients_; ///< by server and limits
  bool draining_ = false;
};

} // namespace millrace

MILLRACE_MESSAGE(millrace::scorer::reference_answered)
