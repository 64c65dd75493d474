// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "actors/interfaces.hpp"
#include "actors/planner/run_history.hpp"

namespace millrace {

/// Who the trainer's ranks are, and whether they are one job. A job (generation) begins when all
/// ranks are there and say that they need the same step next; it ends when one of them is lost.
///
///     gathering --all the same, in none--> (generation written) --> running --one lost-->
///     gathering
///         +--------all in the generation of the log---------------------^
class rank_board {
public:
  explicit rank_board(std::uint32_t ranks) : ranks_(ranks) {}

  /// Errors: bad_value for a rank that the config does not have.
  status arrive(std::uint32_t rank, peer feeder);
  /// @returns whether the running job ended with it.
  bool lose(const peer &feeder);
  /// What a rank says of itself. Errors: conflict, if it has committed what the log has not, or
  /// needs a step that nobody can serve.
  status take(const rank_state &in, const run_history &log);

  enum class verdict : std::uint8_t {
    wait,     ///< somebody is missing
    begin,    ///< all are there, in no job: one can begin at next()
    adopt,    ///< all are there, in the job of the log: it goes on
    disperse, ///< some are in a job that cannot go on: strays() are to end
  };
  /// Errors: conflict, if ranks that are in no job need different steps next.
  result<verdict> judge(const run_history &log) const;
  void run() noexcept { running_ = true; }
  /// Nobody has said anything: all are to speak again.
  void hear_again() noexcept;
  /// Who is in a job that cannot go on is to start again; what the others said stands.
  void forget_strays() noexcept;
  bool running() const noexcept { return running_; }

  bool all_there() const noexcept;
  std::uint32_t count() const noexcept { return ranks_; }
  const peer &feeder(std::uint32_t rank) const { return entries_[rank].feeder; }
  std::vector<peer> feeders() const; ///< those that are there
  /// Precondition: the rank has said it.
  const rank_state &state(std::uint32_t rank) const { return *entries_[rank].said; }
  std::vector<peer> strays() const;
  std::uint64_t next() const { return entries_.front().said->next; }
  /// The first rank that is missing or silent.
  std::uint32_t missing() const noexcept;
  /// A checkpoint of every rank holds steps up to this one.
  std::uint64_t saved() const noexcept;
  void note_saved(const checkpoint_saved &in);
  /// What a rank trained after it said where it stands.
  void note_trained(const step_trained &in);
  void clear() { entries_.clear(); }

private:
  struct entry {
    peer feeder;
    std::optional<rank_state> said;
  };
  const std::uint32_t ranks_;
  std::vector<entry> entries_ = std::vector<entry>(ranks_); ///< by rank
  bool running_ = false;
};

} // namespace millrace
