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
/// @param scored what it is if it ended well and is for training.
episode_state state_without_sample(const wire::EpisodeHeader &episode, episode_state scored) {
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
  return episode.eval() ? episode_state::eval : scored;
}

/// What became of the scored episodes that have no kept sample, by index: pruned or gated, or
/// filtered if some sample is; ineligible if no trace was scored.
std::vector<episode_state> states_of_scored(const wire::GroupAnnotations &annotations,
                                            std::size_t episodes) {
  std::vector<episode_state> out(episodes, episode_state::ineligible);
  if (annotations.traces() == nullptr)
    return out;
  for (const auto *trace : *annotations.traces()) {
    auto &state = out[trace->episode()];
    if (!annotations.admitted())
      state = episode_state::gated;
    else if (state != episode_state::filtered)
      state = episode_state::pruned;
    if (annotations.admitted() && trace->samples() != nullptr)
      for (const auto *sample : *trace->samples())
        if (sample->filtered())
          state = episode_state::filtered;
  }
  return out;
}

/// What the healthy episodes of a group are that ends without scores.
episode_state state_of_end(const wire::EpisodeHeader &episode, group_end end) {
  const auto alone = state_without_sample(episode, episode_state::pruned);
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
        add(sample->filtered() ? episode_state::filtered : episode_state::pruned, tokens);
    }
  }
}

void count_filtered(const wire::GroupHeader &header, log_group &out) {
  const auto found = [](const wire::TraceHeader &trace, wire::FilterFlag filter) {
    return (trace.filters() & static_cast<unsigned>(filter)) != 0 ? 1U : 0U;
  };
  if (header.episodes() == nullptr)
    return;
  for (const auto *episode : *header.episodes())
    if (episode->traces() != nullptr)
      for (const auto *trace : *episode->traces()) {
        out.gibberish += found(*trace, wire::FilterFlag::Gibberish);
        out.repetition += found(*trace, wire::FilterFlag::Repetition);
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
  std::vector<episode_state> scored;
  if (annotations != nullptr)
    scored = states_of_scored(*annotations, count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto &episode = *episodes->Get(static_cast<flatbuffers::uoffset_t>(i));
    out[i] = annotations == nullptr ? state_of_end(episode, end)
                                    : state_without_sample(episode, scored[i]);
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
  count_filtered(header, out);
  for (std::size_t state = 0; state < rows.size(); ++state)
    if (rows[state].samples > 0)
      out.samples.push_back(
          {static_cast<std::uint8_t>(state), rows[state].samples, rows[state].tokens});
  return out;
}

digest128 digest_of(const group_key &key) {
  digest_writer out;
  for (const auto *text : {&key.run, &key.env, &key.task, &key.group})
    out.add_string(*text);
  return out.finish();
}

void ledger::add(const log_group &group) {
  ++groups;
  by_group.push_back({digest_of(group.key), group.ordinal, group.source,
                      static_cast<std::uint32_t>(group.states.size())});
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
  gibberish += group.gibberish;
  repetition += group.repetition;
}

void change_state(log_group &group, episode_state from, episode_state to) {
  const auto old = static_cast<std::uint8_t>(from);
  std::ranges::replace(group.states, old, static_cast<std::uint8_t>(to));
  for (auto &row : group.samples)
    if (row.state == old)
      row.state = static_cast<std::uint8_t>(to);
}

} // namespace millrace
