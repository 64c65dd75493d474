// SPDX-License-Identifier: Apache-2.0
#include "schema/synth.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "schema/recording_writer.hpp"
#include "schema/synth_episode.hpp"

namespace millrace {

namespace {

constexpr std::size_t window = 28;        ///< episodes that are under way at a time
constexpr std::uint32_t loose_one_in = 8; ///< groups that are written frame by frame

/// An episode that is under way: one frame is done at each step.
struct running_episode {
  synth_place place;
  std::vector<message> frames;
  std::size_t done = 0;
  bool loose = false;
  sealed_episode sealed{}; ///< if it is whole and not loose
};

/// What comes once more of a group.
struct late_answers {
  std::uint32_t done = 0; ///< episodes of the group that are whole
  std::vector<sealed_episode> episodes;
};

std::uint32_t scaled(std::uint32_t groups, double scale) {
  return std::max(1U, static_cast<std::uint32_t>(std::llround(groups * scale)));
}

/// All episodes in the order in which they start: groups shuffled over the environments, siblings
/// together.
std::vector<synth_place> schedule(const synth_preset &preset, double scale, random_source random) {
  std::vector<synth_place> groups;
  for (std::uint32_t e = 0; e < preset.environments.size(); ++e)
    for (std::uint32_t g = 0; g < scaled(preset.environments[e].groups, scale); ++g)
      groups.push_back({e, g, 0});
  for (std::size_t i = groups.size(); i > 1; --i)
    std::swap(groups[i - 1], groups[random.below(static_cast<std::uint32_t>(i))]);
  std::vector<synth_place> episodes;
  for (auto place : groups)
    for (; place.episode < preset.environments[place.environment].group_size; ++place.episode)
      episodes.push_back(place);
  return episodes;
}

/// Writes the episodes of a schedule, several at a time.
class synth_run {
public:
  synth_run(recording_writer &writer, const synth_preset &preset, const synth_options &options)
      : writer_(writer), preset_(preset), options_(options), seed_(options.seed),
        random_(seed_.derive(std::uint64_t{1} << 40)),
        schedule_(schedule(preset, options.scale, seed_.derive(std::uint64_t{1} << 41))) {}

  status write() {
    while (true) {
      while (running_.size() < window && next_ < schedule_.size())
        MILLRACE_TRY(start(schedule_[next_++]));
      if (running_.empty())
        return {};
      MILLRACE_TRY(advance(random_.below(static_cast<std::uint32_t>(running_.size()))));
    }
  }

private:
  status start(const synth_place &place) {
    const auto &env = preset_.environments[place.environment];
    if (place.episode == 0 && env.size_place != synth_size_place::frames)
      MILLRACE_TRY(writer_.append_group_size(synth_key(preset_, place), env.group_size));
    running_episode episode;
    episode.place = place;
    episode.loose = options_.loose || place.group % loose_one_in == loose_one_in / 2;
    for (const auto &data : synth_episode(preset_, seed_, place)) {
      auto frame = encode(data);
      if (!frame)
        return tl::unexpected(std::move(frame).error());
      episode.frames.push_back(std::move(*frame));
    }
    running_.push_back(std::move(episode));
    return {};
  }

  status advance(std::size_t which) {
    auto &episode = running_[which];
    ++episode.done;
    if (episode.loose)
      MILLRACE_TRY(writer_.append(record_kind::frame, episode.frames[episode.done - 1]));
    if (episode.done < episode.frames.size())
      return {};
    if (!episode.loose)
      MILLRACE_TRY(write_sealed(episode));
    std::swap(episode, running_.back());
    const auto done = std::move(running_.back());
    running_.pop_back();
    return write_late(done);
  }

  /// Whole episodes that come once more when all of their group are there.
  status write_late(const running_episode &done) {
    const auto &place = done.place;
    const auto &env = preset_.environments[place.environment];
    if (env.late_percent == 0)
      return {};
    const std::pair group(place.environment, place.group);
    auto &late = late_[group];
    auto chance =
        seed_.derive(std::uint64_t{1} << 42).derive(place.environment).derive(place.group);
    if (!done.loose && chance.derive(place.episode).chance(env.late_percent))
      late.episodes.push_back(done.sealed);
    if (++late.done < env.group_size)
      return {};
    const auto whole = late_.extract(group);
    for (const auto &again : whole.mapped().episodes)
      MILLRACE_TRY(writer_.append(again));
    return {};
  }

  status write_sealed(running_episode &episode) {
    std::vector<episode_frame> frames;
    for (auto &parts : episode.frames) {
      auto frame = episode_frame::parse(std::move(parts));
      if (!frame)
        return tl::unexpected(std::move(frame).error());
      frames.push_back(std::move(*frame));
    }
    auto sealed = sealed_episode::seal(std::move(frames));
    if (!sealed)
      return tl::unexpected(std::move(sealed).error());
    episode.sealed = std::move(*sealed);
    return writer_.append(episode.sealed);
  }

  recording_writer &writer_;
  const synth_preset &preset_;
  const synth_options &options_;
  random_source seed_;
  random_source random_;
  std::vector<synth_place> schedule_;
  std::size_t next_ = 0;
  std::vector<running_episode> running_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, late_answers> late_;
};

} // namespace

result<recording_counts> synthesize(const synth_options &options,
                                    const std::filesystem::path &path) {
  const auto preset = synth_preset_named(options.preset);
  if (!preset)
    return tl::unexpected(preset.error());
  if (!(options.scale > 0) || options.scale > 1000)
    return fail(errc::bad_argument, "scale is {}; it must be above 0 and at most 1000",
                options.scale);
  auto writer =
      recording_writer::create(path, fmt::format("synth {} {}", options.preset, options.seed));
  if (!writer)
    return tl::unexpected(std::move(writer).error());
  MILLRACE_TRY(synth_run(*writer, *preset, options).write());
  MILLRACE_TRY(writer->finish());
  return writer->counts();
}

} // namespace millrace
