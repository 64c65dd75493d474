// SPDX-License-Identifier: Apache-2.0
#include "actors/planner/rank_board.hpp"

#include <algorithm>
#include <utility>

namespace millrace {

status rank_board::arrive(std::uint32_t rank, peer feeder) {
  if (rank >= ranks_)
    return fail(errc::bad_value, "{} is none of the {} that the config has", feeder.id().name,
                ranks_);
  entries_[rank] = {std::move(feeder), std::nullopt};
  return {};
}

bool rank_board::lose(const peer &feeder) {
  for (auto &one : entries_)
    if (one.feeder && one.feeder == feeder) {
      one = {};
      return std::exchange(running_, false);
    }
  return false;
}

status rank_board::take(const rank_state &in, const run_history &log) {
  if (in.rank >= ranks_ || !entries_[in.rank].feeder || in.epoch != log.epoch())
    return {}; // of an earlier life, of the planner or of the rank
  for (const auto &[step, digest] : in.committed) {
    if (step > log.committed())
      return fail(
          errc::conflict,
          "rank {} holds step {} as committed, with digest {}; the log ends with step {}: it "
          "is not the log of this run, or an older copy",
          in.rank, step, digest.hex(), log.committed());
    if (digest != log.digest(step))
      return fail(errc::conflict, "rank {} holds step {} with digest {}, the log has {}", in.rank,
                  step, digest.hex(), log.digest(step).hex());
  }
  if (in.next <= log.durable())
    return fail(errc::conflict,
                "rank {} needs step {} next, but a checkpoint of step {} was durable, and what it "
                "holds is not kept: its checkpoints are gone or older",
                in.rank, in.next, log.durable());
  if (in.trained_to >= in.next)
    return fail(errc::conflict, "rank {} says that it trained step {}, and needs step {} next",
                in.rank, in.trained_to, in.next);
  if (in.next > log.committed() + 1)
    return fail(errc::conflict,
                "rank {} needs step {} next, but the log ends with step {}: its checkpoint is of "
                "another run, or the log is an older copy",
                in.rank, in.next, log.committed());
  entries_[in.rank].said = in;
  return {};
}

bool rank_board::all_there() const noexcept {
  return std::ranges::all_of(entries_, [](const auto &one) { return one.said.has_value(); });
}

result<rank_board::verdict> rank_board::judge(const run_history &log) const {
  if (running_ || !all_there())
    return verdict::wait;
  const auto in_job = [](const entry &one) { return one.said->generation != 0; };
  if (std::ranges::none_of(entries_, in_job)) {
    for (std::uint32_t rank = 1; rank < ranks_; ++rank)
      if (state(rank).next != next())
        return fail(errc::conflict,
                    "rank 0 needs step {} next, rank {} needs step {}: their checkpoints are of "
                    "different steps",
                    next(), rank, state(rank).next);
    return verdict::begin;
  }
  const auto current = [&log](const entry &one) {
    return one.said->generation == log.generation();
  };
  return std::ranges::all_of(entries_, current) ? verdict::adopt : verdict::disperse;
}

std::vector<peer> rank_board::feeders() const {
  std::vector<peer> out;
  for (const auto &one : entries_)
    if (one.feeder)
      out.push_back(one.feeder);
  return out;
}

std::vector<peer> rank_board::strays() const {
  std::vector<peer> out;
  for (const auto &one : entries_)
    if (one.said && one.said->generation != 0)
      out.push_back(one.feeder);
  return out;
}

std::uint32_t rank_board::missing() const noexcept {
  const auto found = std::ranges::find_if(entries_, [](const auto &one) { return !one.said; });
  return static_cast<std::uint32_t>(found - entries_.begin());
}

void rank_board::hear_again() noexcept {
  for (auto &one : entries_)
    one.said.reset();
}

void rank_board::forget_strays() noexcept {
  for (auto &one : entries_)
    if (one.said && one.said->generation != 0)
      one.said.reset();
}

void rank_board::note_trained(const step_trained &in) {
  if (in.rank >= ranks_ || !entries_[in.rank].said)
    return;
  auto &said = *entries_[in.rank].said;
  said.trained.push_back({in.step, in.totals});
  said.trained_to = std::max(said.trained_to, in.step);
}

std::uint64_t rank_board::saved() const noexcept {
  std::uint64_t least = UINT64_MAX;
  for (const auto &one : entries_)
    least = std::min(least, one.said ? one.said->saved : 0);
  return least;
}

void rank_board::note_saved(const checkpoint_saved &in) {
  if (in.rank < ranks_ && entries_[in.rank].said)
    entries_[in.rank].said->saved = std::max(entries_[in.rank].said->saved, in.step);
}

} // namespace millrace
