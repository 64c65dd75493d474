// SPDX-License-Identifier: Apache-2.0
#include "actors/reader/env_reader.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "runtime/crash_point.hpp"
#include "runtime/log.hpp"

namespace millrace {

namespace {

using clock = std::chrono::steady_clock;

/// One turn reads for so long, then lets others run.
constexpr std::chrono::milliseconds turn_length{4};

std::uint64_t bytes_of(const record &what) {
  std::uint64_t sum = 0;
  for (const auto &part : what.parts)
    sum += part.size();
  return sum;
}

/// The first frame of a record that failed a check, if at least that much of it verifies.
std::optional<body<wire::EpisodeFrame>> first_frame(const record &what) {
  auto bytes = what.parts.front();
  if (what.kind == record_kind::sealed_episode) {
    const auto index = parse<wire::SealedIndex>(bytes);
    if (!index || (*index)->frames()->size() == 0)
      return std::nullopt;
    const auto extents = span_of((*index)->frames()->Get(0)->extents());
    if (extents.empty() || extents[0].part() >= what.parts.size())
      return std::nullopt;
    const auto &part = what.parts[extents[0].part()];
    if (extents[0].offset() > part.size() || extents[0].size() > part.size() - extents[0].offset())
      return std::nullopt;
    bytes = part.sub(extents[0].offset(), extents[0].size());
  }
  auto table = parse<wire::EpisodeFrame>(bytes);
  if (!table || text_of((*table)->episode()).empty())
    return std::nullopt;
  return std::move(*table);
}

} // namespace

env_reader::env_reader(caf::actor_config &config, const actor_context &context,
                       env_reader_options options, std::unique_ptr<record_source> source,
                       env_reader_peers peers, std::shared_ptr<run_counters> counters,
                       std::shared_ptr<quarantine> refused)
    : stage_actor(config, context, fmt::format("env-reader-{}", options.index)),
      options_(std::move(options)), source_(std::move(source)), peers_(std::move(peers)),
      counters_(std::move(counters)), refused_(std::move(refused)),
      groups_(source_->source(), options_.sizes) {
  for (const auto &one : peers_.assemblers)
    assemblers_.push_back({one});
  counters_->mapped += source_->mapped_bytes();
}

void env_reader::on_exit() {
  if (const auto closed = source_->close(); !closed)
    log::error("{}: {}", name(), closed.error().message);
  groups_ = group_table({}, {});
  assemblers_.clear();
}

caf::behavior env_reader::make_behavior() {
  send(this, read_more{});
  return {
      on(&env_reader::read),         on(&env_reader::take_permit), on(&env_reader::take_settled),
      on(&env_reader::take_hunger),  on(&env_reader::take_up),     on(&env_reader::take_draining),
      on(&env_reader::take_down),    on(&env_reader::take_room),   on(&env_reader::look_again),
      on(&env_reader::take_hello),   on(&env_reader::take_wanted), on(&env_reader::take_safe),
      on(&env_reader::take_progress)};
}

void env_reader::take_permit(const permit &in) {
  permitted_below_ = std::max(permitted_below_, in.below);
  try_again();
}

void env_reader::wait_for(std::string_view what, std::string_view on) {
  state_ = state::waiting;
  counters_->waits->set(name(), what, what, on);
}

void env_reader::wait_for_permit(std::uint64_t ordinal) {
  state_ = state::waiting;
  counters_->waits->set(name(), fmt::format("permit {}", ordinal),
                        fmt::format("a permit to begin group {}: step {} is collected, {} steps' "
                                    "worth of groups wait",
                                    ordinal, progress_.step, progress_.backlog_steps),
                        "planner");
}

void env_reader::take_progress(const planner_progress &in) {
  progress_ = in;
  if (held_ && state_ == state::waiting)
    try_again(); // what it waits for is told anew
}

/// Tries the record again that had to wait.
void env_reader::try_again() {
  if (state_ != state::waiting)
    return;
  state_ = state::reading;
  send(this, read_more{});
}

void env_reader::take_room(const room_came &) { try_again(); }

void env_reader::look_again(const look_for_room &) {
  looking_ = false;
  try_again();
}

void env_reader::take_hunger(const hunger &in) {
  hungry_ = in.hungry;
  try_again();
}

void env_reader::take_settled(const groups_settled &in) {
  for (auto ref : in.groups) {
    auto *group = groups_.find(ref.ordinal);
    wanted_.erase(ref);
    if (group == nullptr) {
      (in.for_good ? settled_ : released_).insert(ref);
    } else if (mine(*group)) {
      group->assembler = {};
      group->begun = group->released = true;
      group->again.reset();
      if (in.for_good)
        settle(*group);
    }
  }
  try_again(); // a group that waits for a permit may be one of them
}

/// A planner that started again has not heard what this one waits for.
void env_reader::take_hello(const planner_hello &in) {
  if (!planner_.follow(in))
    return;
  if (state_ == state::ended)
    tell(planner_.who(), source_ended{options_.index, groups_.size()});
  try_again();
}

void env_reader::take_wanted(const groups_wanted &in) {
  for (auto ref : in.groups) {
    // What was said of a group before its first message was read is kept until then, also when the
    // table knows it already: its size may have come, or its first record waits.
    const group_table::wish wish{in.scored, in.when};
    if (released_.erase(ref))
      wanted_.emplace(ref, wish);
    else if (auto *group = groups_.find(ref.ordinal);
             group != nullptr && mine(*group) && group->released && !group->settled)
      send_again(*group, wish);
  }
  try_again();
}

void env_reader::send_again(group_table::group &group, group_table::wish wish) {
  group.released = false;
  group.again = wish;
  group.assembler = assembler_for(group);
  if (group.assembler) // else take_up() sends it
    send_kept(group);
  crash_point("reader.group.again");
}

void env_reader::take_up(const peer_up &in) {
  if (in.what != role::assembler)
    return;
  assemblers_.push_back({in.who});
  for (auto *group : groups_.open())
    if (mine(*group) && !group->assembler)
      move_to_another(*group);
  if (state_ == state::ended)
    tell(in.who, source_ended{options_.index, groups_.size()});
  try_again();
}

void env_reader::take_draining(const peer_draining &in) {
  for (auto &one : assemblers_)
    one.draining = one.draining || one.who == in.who;
}

/// What an assembler had and nobody has settled goes to another, from the first message on.
void env_reader::take_down(const peer_down &in) {
  std::erase_if(assemblers_, [&](const auto &one) { return one.who == in.who; });
  std::vector<peer> taken_over;
  for (auto *group : groups_.open())
    if (mine(*group) && group->assembler && group->assembler == in.who) {
      move_to_another(*group);
      if (group->assembler && std::ranges::find(taken_over, group->assembler) == taken_over.end())
        taken_over.push_back(group->assembler);
    }
  // It may have closed what was incomplete already: it must look again.
  if (state_ == state::ended)
    for (const auto &one : taken_over)
      tell(one, source_ended{options_.index, groups_.size()});
  try_again();
}

void env_reader::move_to_another(group_table::group &group) {
  group.assembler = assembler_for(group);
  if (group.assembler)
    send_kept(group);
}

void env_reader::send_kept(const group_table::group &group) {
  if (group.again)
    tell(group.assembler,
         group_again{group.ref, group.info, group.again->scored, group.again->when});
  else if (!group.home.empty()) // it has to know that the group goes on there
    tell(group.assembler, group_sized{group.ref, group.info});
  else // it may have all of it, from an earlier start of this reader: then it offers it
    tell(group.assembler, group_again{group.ref, group.info});
  for (const auto &sent : group.kept)
    std::visit([&](const auto &what) { tell(group.assembler, what); }, sent.what);
}

/// The one with the most room; in turn where they have as much.
peer env_reader::pick_assembler() {
  peer best;
  std::int64_t most = 0;
  const auto count = assemblers_.size();
  for (std::size_t i = 0; i < count; ++i) {
    const auto &[who, draining] = assemblers_[(next_assembler_ + i) % count];
    if (const auto room = who.room(); !draining && (!best || room > most)) {
      best = who;
      most = room;
    }
  }
  ++next_assembler_;
  return best;
}

/// Sends to the group's assembler, and keeps what may be wanted again.
template <class Message> void env_reader::pass_on(group_table::group &group, Message what) {
  if (group.settled)
    return;
  group.kept.push_back(parcel{what});
  if (group.assembler)
    tell(group.assembler, std::move(what));
}

void env_reader::read(const read_more &) {
  if (state_ != state::reading)
    return;
  counters_->waits->clear(name());
  const auto until = clock::now() + turn_length;
  while (clock::now() < until)
    switch (read_one()) {
    case step::taken:
      continue;
    case step::blocked:
      return;
    case step::finished:
      end_of_data();
      return;
    }
  send(this, read_more{});
}

env_reader::step env_reader::read_one() {
  if (!held_ && source_->begins_group() && !may_begin_next())
    return step::blocked;
  const stage_meter::timer timer(counters_->stages.decode);
  auto what = held_ ? std::exchange(held_, std::nullopt) : source_->next();
  if (!what)
    return step::finished;
  switch (what->kind) {
  case record_kind::frame:
    return take_frame(*what);
  case record_kind::sealed_episode:
    return take_sealed(*what);
  case record_kind::group_size:
    take_size(*what);
    return step::taken;
  case record_kind::text:
  case record_kind::index:
  case record_kind::journal_open:
  case record_kind::arrival:
    return step::taken;
  }
  return step::taken;
}

void env_reader::end_of_data() {
  state_ = state::ended;
  // A group of which only the size is known began nowhere: an assembler must close it all the same.
  for (auto *group : groups_.not_begun())
    if (mine(*group) && !settled_.erase(group->ref) && !released_.erase(group->ref)) {
      group->begun = true;
      group->assembler = pick_assembler();
      ++counters_->groups;
      pass_on(*group, group_sized{group->ref, group->info});
    }
  tell(peers_.supervisor,
       source_report{options_.index, source_->counts(), source_->damage(), source_->torn()});
  crash_point("reader.data.ended");
  const source_ended ended{options_.index, groups_.size()};
  for (const auto &one : assemblers_)
    tell(one.who, ended);
  tell(planner_.who(), ended);
}

bool env_reader::mine(const group_table::group &group) const {
  return group.ref.ordinal % options_.count == options_.index;
}

/// Lets something of a group go on, if there is room for it.
env_reader::step env_reader::admit(group_table::group &group) {
  const bool settled = settled_.erase(group.ref);
  if (settled || released_.erase(group.ref)) {
    group.begun = group.released = true;
    group.settled = settled;
  }
  if (group.released)
    return step::taken; // it is read for what it says of the source, and perhaps kept
  if (const auto wanted = wanted_.extract(group.ref)) {
    group.begun = true;
    send_again(group, wanted.mapped());
  }
  if (!group.begun)
    return begin(group);
  return has_room(group) ? step::taken : step::blocked;
}

/// Room here, and on the way to the group's assembler.
bool env_reader::has_room(const group_table::group &group) {
  if (counters_->memory->held > options_.memory_limit && !hungry_) {
    wait_for("memory: more is held than memory.limit", "planner");
    if (!std::exchange(looking_, true))
      delayed_send(this, look_for_room::pause, look_for_room{});
    return false;
  }
  if (!group.assembler && group.home.empty())
    wait_for("an assembler", "assembler");
  else if (!group.assembler)
    wait_for("an assembler that is gone: only its journal has what was sent of a group",
             group.home);
  else if (!group.assembler.can_take())
    wait_for("credit", group.assembler.id().name);
  else
    return true;
  return false;
}

/// A source that is live samples a group with what the policy is when the group may begin.
bool env_reader::may_begin_next() {
  const auto ordinal = groups_.size();
  if (ordinal < permitted_below_)
    return true;
  wait_for_permit(ordinal);
  tell(planner_.who(), permit_wanted{options_.index, ordinal});
  return false;
}

/// Lets a group begin: it needs a permit and an assembler with room, and with a pace its time must
/// have come.
env_reader::step env_reader::begin(group_table::group &group) {
  if (group.ref.ordinal >= permitted_below_) {
    wait_for_permit(group.ref.ordinal);
    tell(planner_.who(), permit_wanted{options_.index, group.ref.ordinal});
    return step::blocked;
  }
  group.assembler = pick_assembler();
  if (!has_room(group))
    return step::blocked;
  if (options_.pace > 0) {
    const auto now = clock::now();
    if (now < next_group_) {
      counters_->waits->set(name(), "pace", "its pace (source.pace)", "");
      delayed_send(this, next_group_ - now, read_more{});
      return step::blocked;
    }
    const std::chrono::duration<double> gap(options_.count / options_.pace);
    next_group_ = std::max(next_group_ + std::chrono::duration_cast<clock::duration>(gap), now);
  }
  group.begun = true;
  ++counters_->groups;
  crash_point("reader.group.begin");
  return step::taken;
}

status env_reader::agree_on_size(group_table::group &group, std::uint32_t size) {
  const bool unknown = group.info->size == 0;
  MILLRACE_TRY(groups_.learn_size(group, size));
  if (unknown && group.info->size != 0 && group.begun)
    pass_on(group, group_sized{group.ref, group.info});
  return {};
}

/// The way that frames and whole episodes share: find the group, let it begin, check, and send or
/// refuse.
template <class Check>
env_reader::step env_reader::take(const record &what, const wire::EpisodeFrame &table, bool parsed,
                                  Check &&check_and_send) {
  if (!has_usable_names(table))
    return refuse_unnamed(what, {errc::too_large, "a name in it is over the limit"});
  auto &group = groups_.of(key_of(*table.key()));
  if (!mine(group))
    return step::taken;
  const auto id = text_of(table.episode());
  if (const auto found = group.rejected.find(id);
      found != group.rejected.end() && table.attempt() <= found->second) {
    if (parsed && group.unparsed.erase(std::string(id)) > 0)
      --counters_->unparsed;
    return step::taken; // it has been counted; what still comes of it is not looked at
  }
  auto checked = agree_on_size(group, table.group_size());
  if (admit(group) == step::blocked) {
    held_ = what;
    return step::blocked;
  }
  counters_->stages.decode.bytes += bytes_of(what);
  if (!parsed && !group.members.contains(id)) {
    group.unparsed.emplace(id);
    ++counters_->unparsed;
  }
  if (is_surplus(group, id)) {
    refuse_surplus(what, group, id);
    return step::taken;
  }
  if (checked)
    checked = check_and_send(group, group_table::member_of(group, id));
  if (!checked)
    refuse_known(what, group, table, checked.error());
  return step::taken;
}

bool env_reader::is_surplus(const group_table::group &group, std::string_view episode) {
  return group.info->size != 0 && group.members.size() >= group.info->size &&
         !group.members.contains(episode);
}

element_limits env_reader::demands_on(const wire::EpisodeFrame &frame) const {
  const auto &all = options_.demands;
  const auto found = all.by_env.find(text_of(frame.key()->env()));
  const auto &demands = found == all.by_env.end() ? all.other : found->second;
  return {.vocab_size = options_.vocab_size, .frozen = demands.frozen, .hints = demands.hints};
}

env_reader::step env_reader::take_frame(const record &what) {
  auto part = episode_frame::parse(what.parts, counters_->memory);
  if (!part)
    return refuse(what, part.error());
  const auto &table = part->table();
  return take(what, table, true, [&](group_table::group &group, std::uint32_t member) -> status {
    MILLRACE_TRY(check_elements(*part, demands_on(table)));
    if (table.finish() != nullptr)
      ++counters_->episodes;
    for (std::uint32_t i = 0; i < part->node_count(); ++i)
      counters_->tokens += span_of(table.nodes()->Get(i)->token_ids()).size();
    counters_->nodes += part->node_count();
    pass_on(group, frame_arrived{group.ref, group.info, member, *part});
    return {};
  });
}

env_reader::step env_reader::take_sealed(const record &what) {
  auto episode = sealed_episode::parse(what.parts, counters_->memory);
  if (!episode)
    return refuse(what, episode.error());
  return take(what, episode->head(), true,
              [&](group_table::group &group, std::uint32_t member) -> status {
                MILLRACE_TRY(check_elements(*episode, demands_on(episode->head())));
                ++counters_->episodes;
                counters_->nodes += episode->finish().nodes();
                counters_->tokens += episode->tokens();
                pass_on(group, episode_arrived{group.ref, group.info, member, *episode});
                return {};
              });
}

void env_reader::take_size(const record &what) {
  const auto size = parse<wire::GroupSize>(what.parts.front(), counters_->memory);
  if (!size) {
    refuse(what, size.error());
    return;
  }
  auto &group = groups_.of(key_of(*(*size)->key()));
  if (!mine(group))
    return;
  counters_->stages.decode.bytes += bytes_of(what);
  if (const auto agreed = agree_on_size(group, (*size)->size()); !agreed) {
    if (++size_conflicts_ <= most_warnings)
      log::warn("{}: {}{}", source_->name(), agreed.error().message, last_warning(size_conflicts_));
    write_refusal(what, group.info->key.text(), {}, agreed.error().message);
  }
}

/// A record that does not parse: an episode is lost to its group if the record still says which.
env_reader::step env_reader::refuse(const record &what, const error &why) {
  if (what.kind == record_kind::frame || what.kind == record_kind::sealed_episode)
    if (const auto table = first_frame(what))
      return take(what, **table, false, [&why](group_table::group &, std::uint32_t) -> status {
        return tl::unexpected(why);
      });
  return refuse_unnamed(what, why);
}

env_reader::step env_reader::refuse_unnamed(const record &what, const error &why) {
  // Every reader of the recording meets this record; one of them counts it.
  if (options_.index != 0)
    return step::taken;
  counters_->unnamed_bytes += bytes_of(what);
  if (++counters_->unnamed_records <= most_warnings)
    log::warn("{}: record at offset {} refused: {}{}", source_->name(), what.offset, why.message,
              last_warning(counters_->unnamed_records));
  write_refusal(what, {}, {}, why.message);
  return step::taken;
}

void env_reader::refuse_known(const record &what, group_table::group &group,
                              const wire::EpisodeFrame &table, const error &why) {
  const auto id = text_of(table.episode());
  group.rejected.insert_or_assign(std::string(id), table.attempt());
  ++counters_->episodes;
  if (++counters_->rejected <= most_warnings)
    log::warn("{}: episode '{}' of group {} rejected: {}{}", source_->name(), id,
              group.info->key.text(), why.message, last_warning(counters_->rejected));
  write_refusal(what, group.info->key.text(), id, why.message);
  pass_on(group, episode_rejected{group.ref, group.info, group_table::member_of(group, id),
                                  std::string(id), table.attempt(), why.message});
}

/// More episodes than its group has: the group goes on without it.
void env_reader::refuse_surplus(const record &what, group_table::group &group,
                                std::string_view episode) {
  group.rejected.emplace(episode, std::numeric_limits<std::uint32_t>::max());
  ++counters_->episodes;
  const auto why = fmt::format("its group has {} episodes, and this is one more", group.info->size);
  if (++counters_->surplus <= most_warnings)
    log::warn("{}: episode '{}' of group {} rejected: {}{}", source_->name(), episode,
              group.info->key.text(), why, last_warning(counters_->surplus));
  write_refusal(what, group.info->key.text(), episode, why);
}

void env_reader::write_refusal(const record &what, std::string_view group, std::string_view episode,
                               std::string_view reason) {
  const auto written = refused_->add({.source = source_->name(),
                                      .offset = what.offset,
                                      .bytes = bytes_of(what),
                                      .group = group,
                                      .episode = episode,
                                      .reason = reason});
  if (!written)
    tell(peers_.supervisor, run_failed{name(), written.error()});
}

} // namespace millrace
