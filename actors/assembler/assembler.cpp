// SPDX-License-Identifier: Apache-2.0
#include "actors/assembler/assembler.hpp"

#include <algorithm>
#include <utility>

#include "runtime/crash_point.hpp"
#include "runtime/log.hpp"

namespace millrace {

assembler::assembler(caf::actor_config &config, const actor_context &context,
                     assembler_options options, assembler_peers peers,
                     std::shared_ptr<run_counters> counters, std::unique_ptr<journal> own)
    : stage_actor(config, context, options.name), options_(std::move(options)),
      peers_(std::move(peers)), counters_(std::move(counters)), journal_(std::move(own)) {
  for (const auto &scorer : peers_.scorers)
    scorers_.push_back({scorer});
}

caf::behavior assembler::make_behavior() {
  if (journal_)
    restore();
  return {
      on(&assembler::take_frame),     on(&assembler::take_episode), on(&assembler::take_rejected),
      on(&assembler::take_size),      on(&assembler::take_end),     on(&assembler::settle),
      on(&assembler::forget_headers), on(&assembler::fetch),        on(&assembler::take_up),
      on(&assembler::take_draining),  on(&assembler::take_down),    on(&assembler::finish),
      on(&assembler::take_hello),     on(&assembler::take_again),   on(&assembler::take_wanted),
      on(&assembler::flush),          on(&assembler::retry),        on(&assembler::take_due)};
}

/// A group that is not closed; a new one has its deadline from now on. What is known of it never
/// becomes less: a reader that starts again may not have read the size yet.
assembler::group &assembler::group_at(group_ref ref,
                                      const std::shared_ptr<const group_info> &info) {
  auto [at, is_new] = groups_.try_emplace(ref);
  auto &where = at->second;
  if (!where.info || info->size != 0)
    where.info = info;
  where.claimed = true;
  if (!is_new)
    return where;
  ++counters_->groups_open;
  set_deadline(ref, where);
  return where;
}

/// From now on; one that was set before means nothing any more.
void assembler::set_deadline(group_ref ref, group &where) {
  where.opening = ++openings_;
  if (const auto limit = options_.deadlines.of(where.info->key.env); limit > 0)
    delayed_send(
        this,
        std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::duration<double>(limit)),
        group_due{ref, where.opening});
}

assembler::spot assembler::open(const safe_message &what,
                                const std::shared_ptr<const group_info> &info) {
  if (closed_.contains(what.group)) {
    count_late(what.group);
    record_repeat(what);
    return {};
  }
  auto &where = group_at(what.group, info);
  if (where.complete) {
    count_late(what.group);
    record_repeat(what);
    return {};
  }
  auto *one = open_member(what.group, where, what.member, what.attempt);
  if (one == nullptr)
    record_repeat(what);
  return {&where, one};
}

void assembler::count_late(group_ref ref) {
  const auto reader = static_cast<std::uint32_t>(ref.ordinal % options_.readers);
  const auto found = groups_.find(ref);
  const bool again = repeating_.contains(reader) || (found != groups_.end() && found->second.again);
  ++(again ? counters_->repeats : counters_->late);
}

void assembler::count_duplicate(group_ref ref) {
  const auto reader = static_cast<std::uint32_t>(ref.ordinal % options_.readers);
  ++(repeating_.contains(reader) ? counters_->repeats : counters_->duplicates);
}

/// The member to put a frame or an episode of this attempt into; null if it has been done by this
/// attempt or a later one. A later attempt starts the member anew.
assembler::member *assembler::open_member(group_ref ref, group &where, std::uint32_t number,
                                          std::uint32_t attempt) {
  auto &one = where.members[number];
  if (attempt > one.attempt) {
    if (one.done)
      --where.done;
    if (one.done || !one.frames.empty())
      count_duplicate(ref);
    one = member{};
    one.attempt = attempt;
  }
  if (one.done || attempt < one.attempt) {
    count_duplicate(ref);
    return nullptr;
  }
  return &one;
}

void assembler::take_frame(const frame_arrived &in) {
  const stage_meter::timer timer(counters_->stages.decode);
  const auto &table = in.part.table();
  const safe_message what{in.group, in.member, table.attempt(), table.frame()};
  const auto [where, one] = open(what, in.info);
  if (one == nullptr)
    return;
  if (!one->frames.emplace(table.frame(), in.part).second) {
    count_duplicate(in.group);
    record_repeat(what);
    return;
  }
  record(in);
  join(in.group, *where, *one);
}

/// Seals the episode if all its frames are there.
void assembler::join(group_ref ref, group &where, member &one) {
  const auto &last = one.frames.rbegin()->second.table();
  if (last.finish() == nullptr || one.frames.size() != last.finish()->frames())
    return;
  std::vector<episode_frame> frames;
  for (auto &[number, part] : one.frames)
    frames.push_back(std::move(part));
  one.frames.clear();
  group_member result;
  result.id = text_of(frames.front().table().episode());
  result.attempt = one.attempt;
  auto sealed = sealed_episode::seal(std::move(frames), counters_->memory);
  if (sealed) {
    result.data = std::move(*sealed);
  } else {
    if (!replaying_ && ++counters_->rejected <= most_warnings)
      log::warn("episode '{}' of group {} rejected: {}{}", result.id, where.info->key.text(),
                sealed.error().message, last_warning(counters_->rejected));
    result.status = wire::EpisodeStatus::Rejected;
    result.reason = sealed.error().message;
  }
  finish_member(ref, where, one, std::move(result));
}

void assembler::take_episode(const episode_arrived &in) {
  const auto &head = in.episode.head();
  const auto [where, one] = open({in.group, in.member, head.attempt()}, in.info);
  if (one == nullptr)
    return;
  record(in);
  group_member result;
  result.data = in.episode;
  result.id = in.episode.id();
  result.attempt = head.attempt();
  finish_member(in.group, *where, *one, std::move(result));
}

void assembler::take_rejected(const episode_rejected &in) {
  const auto [where, one] = open({in.group, in.member, in.attempt}, in.info);
  if (one == nullptr)
    return;
  record(in);
  one->frames.clear();
  group_member result;
  result.id = in.id;
  result.attempt = in.attempt;
  result.status = wire::EpisodeStatus::Rejected;
  result.reason = in.reason;
  finish_member(in.group, *where, *one, std::move(result));
}

void assembler::take_size(const group_sized &in) {
  if (closed_.contains(in.group))
    return;
  const auto before = groups_.find(in.group);
  const auto known = before == groups_.end() ? 0 : before->second.info->size;
  auto &where = group_at(in.group, in.info);
  if (where.info->size != known)
    record(in);
  complete_if_full(in.group, where);
}

void assembler::finish_member(group_ref ref, group &where, member &one, group_member result) {
  {
    const stage_meter::timer timer(counters_->stages.score);
    one.header = make_episode_header(result, options_.seq_len, rules_for(where));
  }
  one.result = std::move(result);
  one.done = true;
  ++where.done;
  complete_if_full(ref, where);
  if (!replaying_)
    show_wait();
}

filter_rules assembler::rules_for(const group &where) const {
  if (!options_.settings)
    return {};
  return rules_of(options_.settings->env(where.info->key.env).filter,
                  options_.settings->vocab_size);
}

/// The oldest group without scores is the one that others wait for.
void assembler::show_wait() {
  if (said_no_space_) {
    counters_->waits->set(name(), "disk", "space for its journal", "");
    return;
  }
  const auto found = std::ranges::find_if(groups_, [](const auto &each) {
    return !each.second.complete || !each.second.header.empty();
  });
  if (found == groups_.end()) {
    counters_->waits->clear(name());
    return;
  }
  const auto &[ref, where] = *found;
  const auto key = where.info->key.text();
  if (!where.complete)
    counters_->waits->set(name(), fmt::format("group {}", ref.ordinal),
                          fmt::format("{} of {} episodes of group {}",
                                      where.info->size - std::min(where.done, where.info->size),
                                      where.info->size, key),
                          "env-reader");
  else if (where.scorer)
    counters_->waits->set(name(), fmt::format("scores of {}", ref.ordinal),
                          fmt::format("the scores of group {}", key), where.scorer.id().name);
  else
    counters_->waits->set(name(), "a scorer", "a scorer", "scorer");
}

void assembler::complete_if_full(group_ref ref, group &where) {
  if (where.complete || where.info->size == 0 || where.done < where.info->size)
    return;
  where.complete = true;
  if (replaying_)
    return; // who is asked is decided later
  crash_point("assembler.group.complete");
  offer(ref, where);
}

/// Hands a complete group to whoever is next.
void assembler::offer(group_ref ref, group &where) {
  release_scorer(where); // who was asked before is not waited for
  if (where.scored) {
    tell(planner_.who(), group_held{ref, self_of(*this)});
    return;
  }
  auto header = header_of(ref, where);
  if (where.expired) {
    auto why = where.info->size == 0
                   ? std::string("its size is not known: set env.NAME.group_size")
                   : fmt::format("{} of {} episodes came", where.done, where.info->size);
    if (where.overdue)
      why += fmt::format(" within {} s (env.{}.group_deadline)",
                         options_.deadlines.of(where.info->key.env), where.info->key.env);
    tell(planner_.who(),
         group_tombstone{ref, header ? std::move(*header) : bare_header_of(ref, where),
                         where.overdue ? tombstone_reason::overdue : tombstone_reason::expired,
                         std::move(why), self_of(*this)});
  } else if (!header) {
    tell(planner_.who(),
         group_tombstone{ref, bare_header_of(ref, where), tombstone_reason::unscored,
                         header.error().message, self_of(*this)});
  } else {
    where.header = std::move(*header);
    ask_scorer(ref, where);
  }
  crash_point("assembler.group.offered");
}

/// The scorer with the fewest groups takes it: one that has stopped answering gets no more than its
/// share. Without any the group waits.
void assembler::ask_scorer(group_ref ref, group &where) {
  scorer_state *best = nullptr;
  for (auto &one : scorers_)
    if (!one.draining && (best == nullptr || one.asked < best->asked))
      best = &one;
  if (best == nullptr)
    return;
  ++best->asked;
  where.scorer = best->who;
  tell(best->who, group_complete{ref, where.header, self_of(*this), planner_.who()});
}

/// The planner has the group's scores, or never will.
void assembler::release_scorer(group &where) {
  for (auto &one : scorers_)
    if (one.who == where.scorer)
      --one.asked;
  where.scorer = {};
  where.header = {};
}

void assembler::forget_headers(const groups_received &in) {
  for (auto ref : in.groups)
    if (const auto found = groups_.find(ref); found != groups_.end())
      release_scorer(found->second); // also when nobody is there to be asked any more
  show_wait();
}

void assembler::take_up(const peer_up &in) {
  if (in.what == role::env_reader) {
    if (const auto reader = number_in(in.who.id().name)) {
      readers_[*reader] = in.who;
      tell_safe(*reader);
    }
    return;
  }
  scorers_.push_back({in.who});
  for (auto &[ref, where] : groups_)
    if (!where.header.empty() && !where.scorer)
      ask_scorer(ref, where);
}

void assembler::take_draining(const peer_draining &in) {
  for (auto &one : scorers_)
    one.draining = one.draining || one.who == in.who;
}

void assembler::take_down(const peer_down &in) {
  if (in.what == role::env_reader) {
    if (const auto reader = number_in(in.who.id().name)) {
      if (const auto known = readers_.find(*reader);
          known != readers_.end() && known->second == in.who)
        readers_.erase(known);
      lose_reader(*reader);
    }
    return;
  }
  std::erase_if(scorers_, [&](const auto &one) { return one.who == in.who; });
  for (auto &[ref, where] : groups_)
    if (where.scorer && where.scorer == in.who) {
      where.scorer = {};
      ask_scorer(ref, where);
    }
}

void assembler::finish(const drain &) {
  draining_ = true;
  leave_if_idle();
}

void assembler::leave_if_idle() {
  if (draining_ && groups_.empty() && (!journal_ || journal_->size() == 0))
    tell(peers_.supervisor, drained{name()});
}

result<frame> assembler::header_of(group_ref ref, const group &where) const {
  std::vector<episode_header> episodes;
  for (const auto &[place, one] : where.members) {
    if (one.done) {
      episodes.push_back(one.header);
      continue;
    }
    // Only frames of it came, and not its end.
    group_member partial;
    partial.id = text_of(one.frames.begin()->second.table().episode());
    partial.attempt = one.attempt;
    partial.status = wire::EpisodeStatus::Cancelled;
    partial.reason = "its end never came";
    episodes.push_back(make_episode_header(partial, options_.seq_len));
  }
  return make_group_header({where.info->key, where.info->source, ref.ordinal, where.info->size},
                           episodes);
}

/// What a group is listed with whose header would be too large: so many episodes, and nothing of
/// them.
frame assembler::bare_header_of(group_ref ref, const group &where) const {
  episode_header nothing;
  nothing.status = wire::EpisodeStatus::Rejected;
  const std::vector episodes(where.members.size(), nothing);
  auto header = make_group_header(
      {where.info->key, where.info->source, ref.ordinal, where.info->size}, episodes);
  MILLRACE_ASSERT(header, "group {}: {}", where.info->key.text(), header.error().message);
  return std::move(*header);
}

void assembler::take_end(const source_ended &in) {
  // All of a group comes from one reader, in order; another one may be sending groups again.
  for (auto at = groups_.begin(); at != groups_.end();) {
    auto &[ref, where] = *at;
    const bool ends = !where.complete && ref.ordinal % options_.readers == in.reader;
    if (ends && (where.scored || !where.claimed)) { // the rest of it went to another assembler
      at = groups_.erase(at);
      --counters_->groups_open;
      continue;
    }
    if (ends)
      expire(ref, where);
    ++at;
  }
  leave_if_idle();
}

/// A group that was let go and opened again since has another deadline. One that a step needs again
/// was complete once.
void assembler::take_due(const group_due &in) {
  const auto found = groups_.find(in.group);
  if (found == groups_.end() || found->second.complete || found->second.opening != in.opening)
    return;
  if (!found->second.claimed) { // its reader may have it elsewhere, where it has a deadline too
    set_deadline(in.group, found->second);
    return;
  }
  ++counters_->overdue;
  found->second.overdue = true;
  expire(in.group, found->second);
  show_wait();
}

/// Data has ended, or its deadline has come, and the group is not complete: it ends outside a step.
void assembler::expire(group_ref ref, group &where) {
  where.complete = true;
  where.expired = true;
  offer(ref, where);
}

/// A planner that started again knows of complete groups only what its log says. What was offered
/// before the first hello may have gone to the planner before.
void assembler::take_hello(const planner_hello &in) {
  if (!planner_.follow(in))
    return;
  for (auto &[ref, where] : groups_)
    if (where.complete && !where.unoffered) {
      where.scored = false;
      offer(ref, where);
    }
  if (journal_ && !journal_->begun())
    begin_journal();
  show_wait();
}

void assembler::take_again(const group_again &in) {
  closed_.erase(in.group);
  if (journal_ && !bring_back(in.group))
    return;
  auto &where = group_at(in.group, in.info);
  if (journal_ && where.expired) {
    where.complete = where.expired = where.overdue = false; // what the journal has not comes again
    set_deadline(in.group, where);
  } else if (!journal_ && (!where.complete || where.expired)) {
    where = {}; // all of it comes again
    where.info = in.info;
    set_deadline(in.group, where);
  }
  if (in.when != planner_moment{})
    where.opening = ++openings_; // it has no deadline: it was complete once
  where.scored = in.scored;
  where.when = std::max(where.when, in.when);
  where.again = true;
  where.unoffered = false;
  if (where.complete)
    offer(in.group, where);
}

void assembler::take_wanted(const groups_wanted &in) {
  for (auto ref : in.groups) {
    if (journal_ && !bring_back(ref))
      return;
    if (const auto found = groups_.find(ref);
        found != groups_.end() && found->second.complete && !found->second.expired) {
      found->second.scored = in.scored;
      found->second.unoffered = false;
      offer(ref, found->second);
    }
  }
}

/// It will be back and send everything again, perhaps to others.
void assembler::lose_reader(std::uint32_t reader) {
  repeating_.insert(reader);
  if (journal_) { // it may be all that there is
    for (auto &[ref, where] : groups_)
      where.claimed = where.claimed && ref.ordinal % options_.readers != reader;
    return;
  }
  std::erase_if(groups_, [&](const auto &each) {
    const auto &[ref, where] = each;
    const bool gone = ref.ordinal % options_.readers == reader && !where.complete;
    if (gone)
      --counters_->groups_open;
    return gone;
  });
  leave_if_idle();
  show_wait();
}

void assembler::settle(const groups_settled &in) {
  std::set<group_ref> ended;
  for (auto ref : in.groups) {
    const auto found = groups_.find(ref);
    if (found != groups_.end() && in.when < found->second.when)
      continue; // it was wanted again since
    ended.insert(ref);
    closed_.insert(ref);
    if (found != groups_.end()) {
      if (found->second.scorer)
        release_scorer(found->second);
      groups_.erase(found);
      --counters_->groups_open;
    }
  }
  drop_from_journal(ended, in.for_good);
  leave_if_idle();
  show_wait();
}

void assembler::fetch(const fetch_episodes &in) { tell(in.packer, look_up(in)); }

episodes_fetched assembler::look_up(const fetch_episodes &in) const {
  episodes_fetched out{.job = in.job, .group = in.group, .episodes = {}, .problem = {}};
  const auto found = groups_.find(in.group);
  if (found == groups_.end()) {
    out.problem = fmt::format("{} does not hold group {}", name(), in.group.ordinal);
    return out;
  }
  // Members are numbered as the header lists them: those that are there, in order of place.
  std::vector<const member *> listed;
  for (const auto &[place, one] : found->second.members)
    listed.push_back(&one);
  for (auto index : in.members) {
    if (index >= listed.size() || !listed[index]->result.data) {
      out.episodes.clear();
      out.problem = fmt::format("{} does not hold episode {} of group {}", name(), index,
                                found->second.info->key.text());
      return out;
    }
    out.episodes.push_back(*listed[index]->result.data);
  }
  return out;
}

} // namespace millrace
