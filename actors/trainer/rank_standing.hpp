// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "actors/interfaces.hpp"
#include "runtime/result.hpp"

namespace millrace {

/// What a rank must not forget while planners come and go: whom it obeys, which trainer job it is
/// part of, and which steps are its own for good. The logic of a feeder, without its micro batches.
/// No clock and no actor.
///
///   fresh --loaded a checkpoint--> at rest --begin_generation--> in a generation, to its end
class rank_standing {
public:
  /// Takes a planner's word: the highest epoch of the first folder that was met.
  /// @returns whether its epoch is higher than was known.
  /// Errors: conflict, with whom it obeys instead.
  result<bool> obey(const planner_claim &claim);
  /// The same for an epoch that came without a folder, with work that a planner gave away.
  /// @returns whether it is higher than was known.
  bool meet(std::uint64_t epoch_met);
  std::uint64_t epoch() const noexcept { return epoch_; }

  /// Its trainer holds what a checkpoint of this step holds. Precondition: it is in no generation.
  void load(std::uint64_t step);
  /// The step that its trainer stands after, from a checkpoint; none: nothing is loaded yet.
  const std::optional<std::uint64_t> &loaded() const noexcept { return loaded_; }

  /// Becomes part of a trainer job. @returns false if it is of that job or a later one already.
  /// Errors: restart, if it is part of an earlier one: its process must begin anew; conflict, if
  /// the job begins at another step than the one that it needs.
  result<bool> begin(const begin_generation &in);
  std::uint64_t generation() const noexcept { return generation_; }

  std::uint64_t last_committed() const noexcept { return last_committed_; }
  std::uint64_t next() const noexcept { return last_committed_ + 1; }

  /// Takes the commit of a step. @returns false if it had it already.
  /// Errors: conflict, with both digests, if it had another; if it is not the next, or not staged.
  result<bool> commit(const commit_step &in, bool staged);
  void train(const step_trained &in);
  void save(const checkpoint_saved &in) { saved_ = in.step; }
  /// Nobody will ask for these steps any more.
  void record(const steps_recorded &in);

  rank_state state(std::uint32_t rank) const;

private:
  struct open_step {
    digest128 digest;
    std::optional<component_totals> trained;
  };

  std::optional<digest128> folder_;
  std::uint64_t epoch_ = 0;
  std::optional<std::uint64_t> loaded_;
  std::uint64_t generation_ = 0;
  std::uint64_t last_committed_ = 0;
  std::uint64_t saved_ = 0;
  std::map<std::uint64_t, open_step> open_; ///< committed, not yet recorded as trained
};

} // namespace millrace
