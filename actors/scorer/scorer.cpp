// SPDX-License-Identifier: Apache-2.0
#include "actors/scorer/scorer.hpp"

#include <utility>

#include "actors/scorer/group_rules.hpp"
#include "runtime/crash_point.hpp"

namespace millrace {

scorer::scorer(caf::actor_config &config, const actor_context &context, std::string name,
               std::shared_ptr<const run_config> settings, scorer_peers peers,
               std::shared_ptr<run_counters> counters, ask_server ask)
    : stage_actor(config, context, std::move(name)), settings_(std::move(settings)),
      peers_(std::move(peers)), counters_(std::move(counters)), ask_(std::move(ask)) {}

void scorer::on_exit() {
  waiting_.clear();
  jobs_.clear();
  ask_ = {};
  clients_.clear(); // they call nobody any more
}

caf::behavior scorer::make_behavior() {
  return {on(&scorer::score),     on(&scorer::take_turn),     on(&scorer::take_hello),
          on(&scorer::take_down), on(&scorer::take_episodes), on(&scorer::take_reference),
          on(&scorer::finish)};
}

void scorer::score(const group_complete &in) {
  auto header = parse<wire::GroupHeader>(in.header);
  if (!header) {
    refuse(in, header.error());
    return;
  }
  const auto &env = settings_->env(text_of((*header)->key()->env()));
  if (end_unscored(in, **header, env))
    return;
  waiting_group group{in, std::move(*header), &env};
  const auto needs = needs_of(env);
  if (needs == score_needs::nothing ||
      (needs == score_needs::reference && reference_episodes(*group.header).empty())) {
    answer(group, std::nullopt);
    return;
  }
  if (needs == score_needs::state)
    group.key = state_key(text_of(group.header->key()->env()));
  const auto [known, is_new] = waiting_.try_emplace(in.group, std::move(group));
  if (!is_new) // offered once more, maybe by another: what is under way goes on
    known->second.in = in;
  ask_turn(known->second);
  show_wait();
}

/// What its members do not allow to be scored asks nobody for anything.
bool scorer::end_unscored(const group_complete &in, const wire::GroupHeader &header,
                          const env_config &env) {
  auto found = find_unscored_end(header, env.scoring);
  if (!found)
    return false;
  ++counters_->groups_scored;
  tell(planner_of(in), group_tombstone{in.group, in.header,
                                       found->end == group_end::stale ? tombstone_reason::stale
                                                                      : tombstone_reason::dropped,
                                       std::move(found->why), in.assembler});
  return true;
}

void scorer::ask_turn(const waiting_group &group) {
  crash_point("scorer.turn.ask");
  const auto &in = group.in;
  tell(planner_of(in), score_wanted{in.group, in.header, group.key, in.assembler, self_of(*this)});
}

/// A planner that started again does not know who waits for a turn.
void scorer::take_hello(const planner_hello &in) {
  if (!planner_.follow(in))
    return;
  for (auto &[ref, group] : waiting_) {
    group.in.planner = planner_.who();
    ask_turn(group);
  }
}

const peer &scorer::planner_of(const group_complete &in) const {
  return in.planner ? in.planner : planner_.who();
}

/// One that is not known here has been asked of another meanwhile.
void scorer::take_turn(const score_turn &in) {
  const auto found = waiting_.find(in.group);
  if (found != waiting_.end() && in.scored) {
    waiting_.erase(found);
  } else if (found != waiting_.end() && found->second.key.empty()) {
    enqueue(found->second);
    begin_asking();
  } else if (found != waiting_.end()) {
    const auto group = waiting_.extract(found);
    answer(group.mapped(), answer_link{group.mapped().key, in.number, in.state, {}});
  }
  show_wait();
  leave_if_idle();
}

/// @param once names the state that it rests on; it gets the one afterwards.
void scorer::answer(const waiting_group &group, std::optional<answer_link> once,
                    const reference_logprobs *reference) {
  const auto &in = group.in;
  answer_inputs inputs{.reference = reference};
  if (once)
    inputs.state = once->before;
  auto found = [&] {
    const stage_meter::timer timer(counters_->stages.score);
    return annotate(group.header, *group.env, inputs);
  }();
  if (!found) {
    refuse(in, found.error());
    return;
  }
  ++counters_->groups_scored;
  counters_->stages.score.bytes += in.header.size() + found->annotations.size();
  if (once)
    once->after = std::move(found->after);
  const bool logged = once.has_value();
  if (logged)
    crash_point("scorer.answer.send");
  tell(planner_of(in), group_scored{in.group, in.header, std::move(found->annotations),
                                    in.assembler, std::move(once)});
  if (logged)
    crash_point("scorer.answer.sent");
}

void scorer::refuse(const group_complete &in, const error &why) {
  ++counters_->groups_scored;
  tell(planner_of(in),
       group_tombstone{in.group, in.header, tombstone_reason::unscored, why.message, in.assembler});
}

/// Without its assembler a group is nobody's: another one sends it again.
void scorer::take_down(const peer_down &in) {
  std::erase_if(waiting_, [&](const auto &group) { return group.second.in.assembler == in.who; });
  const auto jobs = jobs_;
  for (const auto &[number, job] : jobs)
    if (job.server.empty() && job.assembler == in.who) // it will not answer
      end_job(number);
  begin_asking();
  show_wait();
  leave_if_idle();
}

/// It answers what it has; what still comes is asked of another.
void scorer::finish(const drain &) {
  draining_ = true;
  leave_if_idle();
}

void scorer::leave_if_idle() {
  if (draining_ && waiting_.empty())
    tell(peers_.supervisor, drained{name()});
}

void scorer::show_wait() {
  if (waiting_.empty())
    counters_->waits->clear(name());
  else if (!jobs_.empty()) {
    const auto &job = jobs_.begin()->second;
    counters_->waits->set(name(), fmt::format("reference of {}", job.group.ordinal),
                          fmt::format("the {} of {} groups",
                                      job.server.empty() ? "tokens" : "reference logprobs",
                                      waiting_.size()),
                          job.server.empty() ? job.assembler.id().name : job.server);
  } else
    counters_->waits->set(
        name(), fmt::format("turn of {}", waiting_.begin()->first.ordinal),
        fmt::format("the turn of group {}", key_of(*waiting_.begin()->second.header->key()).text()),
        "planner");
}

} // namespace millrace
