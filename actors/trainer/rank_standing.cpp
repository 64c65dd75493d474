// SPDX-License-Identifier: Apache-2.0
#include "actors/trainer/rank_standing.hpp"

#include <algorithm>

namespace millrace {

result<bool> rank_standing::obey(const planner_claim &claim) {
  if (leader_.epoch != 0 && leader_.folder != claim.folder) {
    if (generation_ != 0)
      return fail(errc::conflict, "another planner leads this run: folder {}, epoch {}",
                  leader_.folder.hex(), leader_.epoch);
    leader_ = claim;
    loaded_.reset(); // it was another run's
    return true;
  }
  if (claim.epoch < leader_.epoch)
    return fail(errc::conflict, "fenced: epoch {} leads, this is {}", leader_.epoch, claim.epoch);
  return meet(claim);
}

bool rank_standing::meet(const planner_claim &claim) {
  if (claim.epoch <= leader_.epoch || (leader_.epoch != 0 && leader_.folder != claim.folder))
    return false;
  leader_ = claim;
  return true;
}

void rank_standing::load(std::uint64_t step) {
  MILLRACE_ASSERT(generation_ == 0, "step {} is loaded in generation {}", step, generation_);
  loaded_ = step;
  last_committed_ = step;
  trained_to_ = step;
  saved_ = step;
}

result<bool> rank_standing::begin(const begin_generation &in) {
  if (in.generation <= generation_)
    return false; // said again, or late
  if (generation_ != 0)
    return fail(errc::restart, "generation {} begins, and this rank is part of {}", in.generation,
                generation_);
  if (!loaded_ || in.next != *loaded_ + 1)
    return fail(errc::conflict, "generation {} begins at step {}, and the rank needs {}",
                in.generation, in.next,
                loaded_ ? fmt::format("step {}", *loaded_ + 1) : "a checkpoint first");
  generation_ = in.generation;
  return true;
}

result<bool> rank_standing::commit(const commit_step &in, bool staged) {
  if (in.step <= last_committed_) {
    const auto known = open_.find(in.step);
    if (known != open_.end() && known->second.digest != in.step_digest)
      return fail(errc::conflict, "step {} is committed with digest {}, and was with {}", in.step,
                  in.step_digest.hex(), known->second.digest.hex());
    return false;
  }
  if (generation_ == 0)
    return fail(errc::conflict, "step {} is committed before a trainer job has begun", in.step);
  if (in.step != next())
    return fail(errc::conflict, "step {} is committed after step {}", in.step, last_committed_);
  if (!staged)
    return fail(errc::conflict, "step {} is committed and was not staged", in.step);
  last_committed_ = in.step;
  open_[in.step].digest = in.step_digest;
  return true;
}

void rank_standing::train(const step_trained &in) {
  trained_to_ = std::max(trained_to_, in.step);
  if (const auto known = open_.find(in.step); known != open_.end())
    known->second.trained = in.totals;
}

void rank_standing::record(const steps_recorded &in) {
  open_.erase(open_.begin(), open_.upper_bound(std::min(in.trained, trained_to_)));
}

rank_state rank_standing::state(std::uint32_t rank) const {
  rank_state out{rank, leader_.epoch, generation_, next(), {}, {}, saved_, trained_to_};
  for (const auto &[step, one] : open_) {
    out.committed.push_back({step, one.digest});
    if (one.trained)
      out.trained.push_back({step, *one.trained});
  }
  return out;
}

} // namespace millrace
