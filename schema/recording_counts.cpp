// SPDX-License-Identifier: Apache-2.0
#include "schema/recording_counts.hpp"

namespace millrace {

recording_tally::group_state &recording_tally::group_of(const wire::GroupKey &key) {
  auto values = key_of(key);
  const auto [place, added] = places_.try_emplace(values, groups_.size());
  if (added)
    groups_.emplace_back().count.key = std::move(values);
  return groups_[place->second];
}

void recording_tally::set_size(group_state &group, std::uint32_t size) {
  constexpr std::size_t listed = 100;
  if (size == 0 || size == group.count.size)
    return;
  if (group.count.size == 0)
    group.count.size = size;
  else if (conflicts_.size() < listed)
    conflicts_.push_back(fmt::format("group {} has size {} and size {}", group.count.key.text(),
                                     group.count.size, size));
}

recording_tally::episode_state *recording_tally::open_episode(group_state &group,
                                                              const wire::EpisodeFrame &head) {
  const auto id = text_of(head.episode());
  auto found = group.episodes.find(id);
  if (found == group.episodes.end())
    found = group.episodes.try_emplace(std::string(id)).first;
  else if (head.attempt() > found->second.attempt)
    found->second = {};
  auto &episode = found->second;
  if (head.attempt() < episode.attempt || episode.finished || head.frame() < episode.next_frame) {
    ++repeats_;
    return nullptr;
  }
  episode.attempt = head.attempt();
  return &episode;
}

bool recording_tally::add(const sealed_episode &sealed) {
  if (!has_usable_names(sealed.head()))
    return false;
  auto &group = group_of(*sealed.head().key());
  set_size(group, sealed.head().group_size());
  auto *episode = open_episode(group, sealed.head());
  if (episode == nullptr)
    return false;
  episode->finished = true;
  episode->status = sealed.finish().status();
  episode->nodes = sealed.finish().nodes();
  episode->tokens = sealed.tokens();
  return true;
}

bool recording_tally::add(const episode_frame &frame) {
  const auto &table = frame.table();
  if (!has_usable_names(table))
    return false;
  auto &group = group_of(*table.key());
  set_size(group, table.group_size());
  auto *episode = open_episode(group, table);
  if (episode == nullptr)
    return false;
  episode->next_frame = table.frame() + 1;
  episode->nodes += frame.node_count();
  for (std::uint32_t i = 0; i < frame.node_count(); ++i)
    episode->tokens += span_of(table.nodes()->Get(i)->token_ids()).size();
  if (table.finish() != nullptr) {
    episode->finished = true;
    episode->status = table.finish()->status();
  }
  return true;
}

void recording_tally::add(const wire::GroupSize &size) {
  set_size(group_of(*size.key()), size.size());
}

namespace {

/// A record that says nothing of what is counted. Errors: it does not parse.
template <class T> status added_nothing(const message &parts) {
  if (auto body = parse<T>(parts.front()); !body)
    return tl::unexpected(std::move(body).error());
  return {};
}

} // namespace

status recording_tally::add(record_kind kind, const message &parts) {
  const auto added = [this](auto parsed) -> status {
    if (!parsed)
      return tl::unexpected(std::move(parsed).error());
    add(*parsed);
    return {};
  };
  switch (kind) {
  case record_kind::frame:
    return added(episode_frame::parse(parts));
  case record_kind::sealed_episode:
    return added(sealed_episode::parse(parts));
  case record_kind::group_size: {
    auto size = parse<wire::GroupSize>(parts.front());
    if (!size)
      return tl::unexpected(std::move(size).error());
    add(**size);
    return {};
  }
  case record_kind::text:
    return added_nothing<wire::EpisodeText>(parts);
  case record_kind::journal_open:
    return added_nothing<wire::JournalOpen>(parts);
  case record_kind::arrival:
    return added_nothing<wire::JournalArrival>(parts);
  case record_kind::index:
    break;
  }
  return fail(errc::bad_argument, "a {} record is not added by hand", to_string(kind));
}

recording_counts recording_tally::counts() const {
  recording_counts out;
  out.repeats = repeats_;
  out.conflicts = conflicts_;
  for (const auto &state : groups_) {
    auto group = state.count;
    for (const auto &[id, episode] : state.episodes) {
      if (!episode.finished) {
        ++out.unfinished;
        continue;
      }
      switch (episode.status) {
      case wire::EpisodeStatus::Ok:
        ++group.ok;
        break;
      case wire::EpisodeStatus::Errored:
        ++group.errored;
        break;
      case wire::EpisodeStatus::Cancelled:
        ++group.cancelled;
        break;
      case wire::EpisodeStatus::Rejected:
      default: // a number that is no status: every reader refuses it
        ++group.rejected;
        break;
      }
      group.nodes += episode.nodes;
      group.tokens += episode.tokens;
    }
    out.episodes += group.episodes();
    out.nodes += group.nodes;
    out.tokens += group.tokens;
    out.groups.push_back(std::move(group));
  }
  return out;
}

recording_counts count_recording(recording_reader &reader) {
  recording_tally tally;
  while (const auto one = reader.next())
    static_cast<void>(tally.add(one->kind, one->parts)); // what does not parse is not an episode
  return tally.counts();
}

recording_counts counts_of(const wire::RecordingIndex &index) {
  recording_counts out;
  out.episodes = index.episodes();
  out.nodes = index.nodes();
  out.tokens = index.tokens();
  out.unfinished = index.unfinished();
  if (index.groups() != nullptr)
    for (const auto *group : *index.groups())
      out.groups.push_back({key_of(*group->key()), group->size(), group->ok(), group->errored(),
                            group->cancelled(), group->rejected(), group->nodes(),
                            group->tokens()});
  return out;
}

} // namespace millrace
