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
///
/// A generation binds it to the planner's folder; until then it obeys whoever has said hello last.
class rank_standing {
public:
  /// Takes a planner's hello. @returns whether what was staged for others is void: its epoch is
  /// higher than was known, or it is of another folder.
  /// Errors: conflict, with whom it obeys instead.
  result<bool> obey(const planner_claim &claim);
  /// The same for what came with work: a higher epoch of the folder that it obeys leads from now
  /// on. @returns whether what was staged is void.
  bool meet(const planner_claim &claim);
  /// Who leads, as far as is known. Epoch 0: it has met nobody.
  const planner_claim &leader() const noexcept { return leader_; }

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
  /// Nobody will ask for these steps any more. What the log calls trained and this rank has not
  /// trained yet stays: an earlier job has trained it, and this one does so again.
  void record(const steps_recorded &in);

  rank_state state(std::uint32_t rank) const;

private:
  struct open_step {
    digest128 digest;
    std::optional<component_totals> trained;
  };

  planner_claim leader_;
  std::optional<std::uint64_t> loaded_;
  std::uint64_t generation_ = 0;
  std::uint64_t last_committed_ = 0;
  std::uint64_t trained_to_ = 0; ///< the last step that the trainer holds
  std::uint64_t saved_ = 0;
  std::map<std::uint64_t, open_step> open_; ///< committed, not yet trained here and recorded
};

} // namespace millrace
