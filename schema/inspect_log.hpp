// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/json_out.hpp"
#include "schema/episode_state.hpp"
#include "schema/planner_log.hpp"

namespace millrace {

/// Where episodes, samples and cut tokens of some groups went.
struct state_counts {
  std::uint64_t groups = 0;
  std::array<std::uint64_t, episode_state_count> episodes{};
  std::array<std::uint64_t, episode_state_count> samples{};
  std::array<std::uint64_t, episode_state_count> tokens{}; ///< of those samples
  std::uint64_t cut_tokens = 0;

  void add(const log_group &group);
  void add(const state_counts &other);
  void move(episode_state from, episode_state to);
};

/// A step that holds, as the log says.
struct step_summary {
  enum class mark { committed, trained, durable };

  std::uint64_t groups = 0;
  std::uint64_t traces = 0;
  std::uint64_t samples = 0;
  std::uint64_t tokens = 0;
  std::uint64_t padding = 0;
  std::uint64_t micro_batches = 0;
  std::uint64_t dummies = 0;
  std::uint64_t wire_bytes = 0;
  digest128 digest;
  mark reached = mark::committed;
  std::optional<log_trained> totals; ///< once it is trained
  state_counts states;
};

/// A start, a trainer job or a rollback, in the order of the log, and the last step at that time.
struct log_event {
  std::variant<log_open, log_generation, log_rolled_back> what;
  std::uint64_t committed = 0;
};

/// What is in a planner's log.
struct log_summary {
  std::string path;
  std::uint64_t bytes = 0;
  std::array<std::uint64_t, std::variant_size_v<log_record>> records{}; ///< by kind
  std::vector<log_event> events;
  std::map<std::uint64_t, step_summary> steps; ///< those that were not rolled back
  state_counts outside;                        ///< groups that ended outside a step
  state_counts lost;                           ///< of steps that were rolled back after training

  std::optional<torn_tail> torn;
  std::string damage; ///< not empty: where reading ended, and why

  /// The last start; null in a log without any.
  const log_open *last_start() const noexcept;
  /// Where every episode of the log is. Those of steps that no rank is known to have trained are
  /// held, as in a run's ledger.
  state_counts states() const;
};

/// Reads a whole log; a planner may have it open. What stands before damage is in the summary.
/// Errors: those of read_planner_log but damaged.
result<log_summary> inspect_log(const std::filesystem::path &path);
/// The same over bytes in memory.
result<log_summary> inspect_log(const frame &bytes, const std::string &name);

/// For a person: a line for each event and step.
std::string text_of(const log_summary &summary);
/// For a program. Source: docs/formats.md, "The planner's log".
json::tree json_of(const log_summary &summary);

} // namespace millrace
