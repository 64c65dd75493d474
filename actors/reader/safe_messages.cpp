// SPDX-License-Identifier: Apache-2.0
// What an assembler has in its journal.
#include <algorithm>
#include <utility>

#include "actors/reader/env_reader.hpp"
#include "runtime/crash_point.hpp"

namespace millrace {

namespace {

/// What an assembler calls a message that was sent to it; nothing for a size.
std::optional<safe_message> name_of(const parcel &sent) {
  if (const auto *in = std::get_if<frame_arrived>(&sent.what))
    return safe_message{in->group, in->member, in->part.table().attempt(),
                        in->part.table().frame()};
  if (const auto *in = std::get_if<episode_arrived>(&sent.what))
    return safe_message{in->group, in->member, in->episode.head().attempt()};
  if (const auto *in = std::get_if<episode_rejected>(&sent.what))
    return safe_message{in->group, in->member, in->attempt};
  return std::nullopt;
}

} // namespace

void env_reader::take_safe(const messages_safe &in) {
  std::map<group_ref, std::set<safe_message>> by_group;
  for (const auto &one : in.messages)
    by_group[one.group].insert(one);
  for (const auto &[ref, safe] : by_group)
    if (auto *group = groups_.find(ref.ordinal); group != nullptr && mine(*group))
      let_go_of(*group, safe, in.assembler);
  crash_point("reader.safe.taken");
}

/// A group that has moved on meanwhile is not theirs any more: they have a copy.
void env_reader::let_go_of(group_table::group &group, const std::set<safe_message> &safe,
                           const peer &home) {
  const bool elsewhere = !group.home.empty() && group.home != home.id().name;
  if (group.settled || elsewhere || (!group.released && group.assembler != home))
    return;
  const auto gone = std::erase_if(group.kept, [&](const parcel &sent) {
    const auto name = name_of(sent);
    return name && safe.contains(*name);
  });
  if (gone > 0 && group.home.empty()) {
    group.home = home.id().name;
    counters_->pinned->add(group.home);
  }
}

/// Nobody needs it any more.
void env_reader::settle(group_table::group &group) {
  group.settled = true;
  group.kept = {};
  if (!group.home.empty())
    counters_->pinned->remove(std::exchange(group.home, {}));
}

/// Where what is sent of a group goes; none: it has to wait.
peer env_reader::assembler_for(const group_table::group &group) {
  if (group.home.empty())
    return pick_assembler();
  for (const auto &one : assemblers_)
    if (one.who.id().name == group.home)
      return one.who;
  return {};
}

} // namespace millrace
