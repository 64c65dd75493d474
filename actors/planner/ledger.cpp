// SPDX-License-Identifier: Apache-2.0
#include "actors/planner/ledger.hpp"

#include <algorithm>
#include <numeric>

namespace millrace {

namespace {

/// State of a sample that the planner handled.
episode_state state_of(const sample_record &sample, group_end end) {
  if (end == group_end::dropped && sample.outcome != sample_record::fate::rejected)
    return episode_state::group_dropped;
  switch (sample.outcome) {
  case sample_record::fate::packed:
    return sample.trainable_in_seq_len > 0 ? episode_state::trained : episode_state::truncated;
  case sample_record::fate::cut:
    return episode_state::truncated;
  case sample_record::fate::rejected:
    return episode_state::rejected;
  case sample_record::fate::stale:
    return episode_state::stale;
  case sample_record::fate::waiting:
    return episode_state::held;
  }
  return episode_state::held;
}

/// The state of an episode that no sample speaks for.
episode_state state_without_sample(const wire::EpisodeHeader &episode, bool annotated,
                                   bool admitted) {
  switch (episode.status()) {
  case wire::EpisodeStatus::Errored:
    return episode_state::errored;
  case wire::EpisodeStatus::Cancelled:
    return episode_state::cancelled;
  case wire::EpisodeStatus::Rejected:
    return episode_state::rejected;
  case wire::EpisodeStatus::Ok:
    break;
  }
  if (episode.eval())
    return episode_state::eval;
  if (!annotated)
    return episode_state::ineligible;
  return admitted ? episode_state::pruned : episode_state::gated;
}

/// What the healthy episodes of a group are that ends without scores.
episode_state state_of_end(const wire::EpisodeHeader &episode, group_end end) {
  const auto alone = state_without_sample(episode, true, true);
  if (alone != episode_state::pruned)
    return alone;
  switch (end) {
  case group_end::held:
    return episode_state::held;
  case group_end::stale:
    return episode_state::stale;
  case group_end::dropped:
    return episode_state::group_dropped;
  default:
    return episode_state::rejected;
  }
}

/// Gives the samples that the scorer listed and did not keep to `add`, with their states.
template <class Add>
void for_unkept_samples(const wire::GroupHeader &header, const wire::GroupAnnotations *annotations,
                        Add &&add) {
  if (annotations == nullptr || annotations->traces() == nullptr)
    return;
  for (const auto *trace : *annotations->traces()) {
    const auto &branches =
        *header.episodes()->Get(trace->episode())->traces()->Get(trace->trace())->branches();
    if (trace->samples() == nullptr)
      continue;
    for (const auto *sample : *trace->samples()) {
      const auto tokens = branches.Get(sample->branch())->tokens();
      if (!annotations->admitted())
        add(episode_state::gated, tokens);
      else if (!sample->kept())
        add(episode_state::pruned, tokens);
    }
  }
}

} // namespace

std::uint64_t ledger::total() const noexcept {
  return std::accumulate(episodes.begin(), episodes.end(), std::uint64_t{0});
}

std::vector<episode_state> states_of(const wire::GroupHeader &header,
                                     const wire::GroupAnnotations *annotations,
                                     std::span<const sample_record> kept, group_end end) {
  const auto *episodes = header.episodes();
  const std::size_t count = episodes == nullptr ? 0 : episodes->size();
  std::vector<episode_state> out(count, episode_state::expired);
  if (end == group_end::expired || end == group_end::overdue)
    return out;
  std::vector<bool> annotated(count, false);
  if (annotations != nullptr && annotations->traces() != nullptr)
    for (const auto *trace : *annotations->traces())
      annotated[trace->episode()] = true;
  for (std::size_t i = 0; i < count; ++i) {
    const auto &episode = *episodes->Get(static_cast<flatbuffers::uoffset_t>(i));
    out[i] = annotations == nullptr
                 ? state_of_end(episode, end)
                 : state_without_sample(episode, annotated[i], annotations->admitted());
  }
  std::vector<bool> spoken_for(count, false);
  for (const auto &sample : kept) {
    const auto state = state_of(sample, end);
    auto &slot = out[sample.episode];
    // The order of the states is their precedence.
    if (!spoken_for[sample.episode] || state < slot)
      slot = state;
    spoken_for[sample.episode] = true;
  }
  return out;
}

log_group group_entry(const wire::GroupHeader &header, const wire::GroupAnnotations *annotations,
                      std::span<const sample_record> kept, group_end end) {
  log_group out;
  out.ordinal = header.ordinal();
  out.key = key_of(*header.key());
  for (auto state : states_of(header, annotations, kept, end))
    out.states.push_back(static_cast<std::uint8_t>(state));
  std::array<log_samples, episode_state_count> rows{};
  const auto add_sample = [&rows](episode_state state, std::uint64_t tokens) {
    auto &row = rows[static_cast<std::size_t>(state)];
    ++row.samples;
    row.tokens += tokens;
  };
  for (const auto &sample : kept) {
    const bool packed = sample.outcome == sample_record::fate::packed;
    add_sample(state_of(sample, end), packed ? sample.kept : sample.tokens);
    if (packed)
      out.cut_tokens += sample.tokens - sample.kept;
    if (sample.outcome == sample_record::fate::stale)
      out.longest_stale = std::max(out.longest_stale, sample.tokens);
  }
  out.overdue = end == group_end::overdue;
  for_unkept_samples(header, annotations, add_sample);
  for (std::size_t state = 0; state < rows.size(); ++state)
    if (rows[state].samples > 0)
      out.samples.push_back(
          {static_cast<std::uint8_t>(state), rows[state].samples, rows[state].tokens});
  return out;
}

void ledger::add(const log_group &group) {
  ++groups;
  for (auto state : group.states)
    ++episodes.at(state);
  for (const auto &one : group.samples) {
    auto &row = samples.at(one.state);
    row.samples += one.samples;
    row.tokens += one.tokens;
  }
  cut_tokens += group.cut_tokens;
  longest_stale = std::max(longest_stale, group.longest_stale);
  if (group.overdue)
    overdue.emplace_back(group.key, group.states.size());
}

void change_state(log_group &group, episode_state from, episode_state to) {
  const auto old = static_cast<std::uint8_t>(from);
  std::ranges::replace(group.states, old, static_cast<std::uint8_t>(to));
  for (auto &row : group.samples)
    if (row.state == old)
      row.state = static_cast<std::uint8_t>(to);
}

} // namespace millrace
