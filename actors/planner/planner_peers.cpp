// SPDX-License-Identifier: Apache-2.0
// Who comes and goes, and what they are told.
#include <algorithm>
#include <utility>

#include "actors/planner/planner.hpp"
#include "runtime/crash_point.hpp"
#include "runtime/log.hpp"

namespace millrace {

planner_claim planner::claim() const {
  const auto &log = log_->history();
  return {log.opened()->folder, log.epoch()};
}

planner_hello planner::hello() { return {claim(), log_->history().durable(), self_of(*this)}; }

void planner::take_up(const peer_up &in) {
  if (finished_)
    return;
  const auto place = number_in(in.who.id().name);
  if (in.what == role::env_reader) {
    readers_.resize(options_.readers);
    if (!place || *place >= options_.readers) {
      give_up({errc::bad_value, fmt::format("{} is none of the {} that the config has",
                                            in.who.id().name, options_.readers)});
      return;
    }
    readers_[*place] = in.who;
    greet_reader(in.who);
    ask(in.who, missing_groups(), true);
    ask(in.who, {freed_.begin(), freed_.end()}, false);
  } else if (in.what == role::assembler) {
    assemblers_.push_back(in.who);
    greet_assembler(in.who);
  } else if (in.what == role::trainer) {
    if (auto known = ranks_.arrive(place.value_or(UINT32_MAX), in.who); !known) {
      give_up(known.error());
      return;
    }
    crash_point("planner.hello.send");
    tell(in.who, hello());
    for (const auto &notice : notices_)
      tell(in.who, notice);
  } else if (in.what == role::scorer) {
    tell(in.who, hello());
  } else if (in.what == role::packer) {
    packers_.push_back({in.who});
    tell(in.who, hello());
    give_orphans();
  }
  pump();
}

/// One that starts anew reads from the first record on: it must know what need not be sent.
void planner::greet_reader(const peer &who) {
  tell(who, hello());
  std::vector<group_ref> mine;
  for (auto ref : log_->history().groups().list())
    if (reader_of(ref) == who)
      mine.push_back(ref);
  tell_known(who, mine);
  tell(who, told_progress_);
  tell(who, permit{permitted_below_});
  tell(who, hunger{told_hungry_});
}

/// One with a journal may have groups of an earlier start: it offers, after the hello, those that
/// it has not been told of before.
void planner::greet_assembler(const peer &who) {
  if (options_.journals)
    tell_known(who, log_->history().groups().list());
  tell(who, hello());
  ask(who, missing_groups(), true);
  ask(who, {freed_.begin(), freed_.end()}, false);
}

/// These groups have their end in the log: for good, or in a step that may have to be made again.
void planner::tell_known(const peer &whom, const std::vector<group_ref> &groups) {
  std::vector<group_ref> settled;
  std::vector<group_ref> released;
  for (auto ref : groups)
    (log_->history().is_settled(ref) ? settled : released).push_back(ref);
  tell_settled(whom, settled);
  tell_settled(whom, released, false);
}

void planner::take_draining(const peer_draining &in) {
  for (auto &one : packers_)
    one.draining = one.draining || one.who == in.who;
}

/// What a packer had and no feeder has staged is gathered by another. What was only at an assembler
/// comes again from a reader, through another assembler.
void planner::take_down(const peer_down &in) {
  if (finished_)
    return;
  if (in.what == role::packer) {
    std::erase_if(packers_, [&](const auto &one) { return one.who == in.who; });
    for (auto &[number, step] : steps_)
      for (auto &[bin, order] : step.bins)
        if (order.packer && order.packer == in.who)
          order.packer = {};
    give_orphans();
  } else if (in.what == role::assembler) {
    std::erase(assemblers_, in.who);
    gone_.insert(in.who);
    ask_again_for_lost(in.who);
    ask_for_lost_copies(in.who);
  } else if (in.what == role::env_reader) {
    for (std::uint32_t i = 0; i < readers_.size(); ++i)
      if (readers_[i] && readers_[i] == in.who) {
        readers_[i] = {};
        ended_readers_.erase(i);
        wishes_.erase(i);
      }
  } else if (in.what == role::trainer) {
    if (ranks_.lose(in.who))
      end_job(fmt::format("{} {}", in.who.id().name, in.why));
  }
  pump();
}

/// What a step that is made again has to have from it.
void planner::ask_again_for_lost(const peer &assembler) {
  std::set<group_ref> wanted;
  for (auto &[number, step] : steps_) {
    if (!step.committed)
      continue;
    std::erase_if(step.places, [&](const auto &place) { return place.second == assembler; });
    for (auto &[bin, order] : step.bins)
      for (auto &group : order.order.groups)
        if (group.assembler && group.assembler == assembler) {
          group.assembler = {};
          order.packer = {}; // it gets the order again once all is there
          wanted.insert(group.group);
        }
  }
  ask_for({wanted.begin(), wanted.end()}, true);
}

/// What no step has committed comes again from its reader, unless that has given it to another
/// assembler already: then that one offers it again.
void planner::ask_for_lost_copies(const peer &assembler) {
  auto wanted = queue_.held_by(assembler);
  for (const auto &[number, step] : steps_)
    for (const auto &group : step.groups)
      if (group.assembler == assembler)
        wanted.push_back(group.ref);
  ask_for(wanted, false);
}

/// The ranks tell each other where they are.
void planner::hear(const rank_notice &in) {
  notices_.push_back(in);
  for (const auto &feeder : ranks_.feeders())
    tell(feeder, in);
}

/// Somebody knows of a later start, or of another folder's planner. Nothing more is written.
void planner::take_refusal(const planner_refused &in) {
  if (in.claim.folder != claim().folder || in.claim.epoch < claim().epoch)
    return; // an answer to another, or to an earlier life
  give_up({errc::conflict, in.why});
}

peer planner::reader_of(group_ref ref) const {
  const auto reader = ref.ordinal % options_.readers;
  return reader < readers_.size() ? readers_[reader] : peer();
}

/// Their bytes are in committed micro batches, or nobody needs them: assemblers, also those that
/// have a stale copy, need not hold them any more. Their journals need, until it is for good.
void planner::settle(const std::vector<group_ref> &groups, bool for_good) {
  for (const auto &one : assemblers_)
    tell_settled(one, groups, for_good);
  tell_readers(groups, for_good);
}

void planner::tell_readers(const std::vector<group_ref> &groups, bool for_good) {
  std::map<peer, std::vector<group_ref>> by_reader;
  for (auto ref : groups)
    if (const auto reader = reader_of(ref))
      by_reader[reader].push_back(ref);
  for (const auto &[reader, refs] : by_reader)
    tell_settled(reader, refs, for_good);
}

void planner::tell_settled(const peer &whom, const std::vector<group_ref> &groups, bool for_good) {
  for (std::size_t at = 0; at < groups.size(); at += groups_settled::most_refs) {
    const auto end = std::min(groups.size(), at + groups_settled::most_refs);
    tell(whom, groups_settled{{groups.begin() + static_cast<std::ptrdiff_t>(at),
                               groups.begin() + static_cast<std::ptrdiff_t>(end)},
                              for_good,
                              {log_->history().epoch(), asks_}});
  }
}

/// Groups of steps that are made again whose bytes nobody has offered.
std::vector<group_ref> planner::missing_groups() const {
  std::set<group_ref> out;
  for (const auto &[number, step] : steps_)
    for (const auto &[bin, order] : step.bins)
      for (const auto &group : order.order.groups)
        if (!group.assembler)
          out.insert(group.group);
  return {out.begin(), out.end()};
}

void planner::ask_for(const std::vector<group_ref> &groups, bool scored) {
  for (const auto &one : assemblers_)
    ask(one, groups, scored);
  for (const auto &reader : readers_)
    if (reader)
      ask(reader, groups, scored);
}

void planner::ask(const peer &whom, const std::vector<group_ref> &groups, bool scored) {
  ++asks_; // what was settled before is wanted now
  for (std::size_t at = 0; at < groups.size(); at += groups_wanted::most_refs) {
    const auto end = std::min(groups.size(), at + groups_wanted::most_refs);
    tell(whom, groups_wanted{{groups.begin() + static_cast<std::ptrdiff_t>(at),
                              groups.begin() + static_cast<std::ptrdiff_t>(end)},
                             scored,
                             {log_->history().epoch(), asks_}});
  }
}

} // namespace millrace
