// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "runtime/digest.hpp"
#include "runtime/frame.hpp"
#include "runtime/result.hpp"
#include "schema/episode.hpp"

namespace millrace {

// The records of the planner's log (STATE/planner.log), which decides what was done:
// docs/recovery.md says who writes which when, and what rests on it.

/// A start of the planner. What it says of the run must fit the record before it.
struct log_open {
  std::string run;
  digest128 folder;          ///< names the state folder; random, made with it
  std::uint64_t epoch = 0;   ///< from 1, one more at every start
  std::string program;       ///< version
  std::string config_digest; ///< of the settings that all processes share, hex
  std::string source;        ///< what is read, as the config names it
  std::uint32_t ranks = 0;
};

/// A trainer job began.
struct log_generation {
  std::uint64_t generation = 0;
  std::uint64_t next = 0; ///< the first step that it trains
};

/// Samples of a group that came to the same end.
struct log_samples {
  std::uint8_t state = 0; ///< schema/episode_state.hpp
  std::uint64_t samples = 0;
  std::uint64_t tokens = 0;

  bool operator==(const log_samples &) const = default;
};

/// A group at its end.
struct log_group {
  std::uint64_t ordinal = 0; ///< of the group in its source
  std::uint32_t source = 0;
  group_key key;
  std::vector<std::uint8_t> states; ///< by episode of its header: episode_state
  std::vector<log_samples> samples; ///< at most one for each state
  std::uint64_t cut_tokens = 0;     ///< cut off samples that were packed
  std::string why;                  ///< for people: why it goes to no step; empty in a commit
  std::uint64_t gibberish = 0;      ///< traces in which that filter found something
  std::uint64_t repetition = 0;
  std::uint64_t judged_for = 0;    ///< settled as too old: the step that it was too old for
  std::uint64_t longest_stale = 0; ///< tokens of the longest sample that was too old
  bool overdue = false;            ///< its deadline closed it: it lists what came in time
};

/// Episodes with a sample in a step, by how many versions late they were.
struct staleness_count {
  std::uint64_t staleness = 0;
  std::uint64_t episodes = 0;

  auto operator<=>(const staleness_count &) const = default;
};

/// Lengths of samples, before the cut at seq_len. Unit: tokens.
struct sample_lengths {
  std::uint64_t samples = 0;
  std::uint64_t tokens = 0;
  std::uint64_t longest = 0;

  bool operator==(const sample_lengths &) const = default;
  double mean() const noexcept {
    return samples == 0 ? 0 : static_cast<double>(tokens) / static_cast<double>(samples);
  }
  void add(std::uint64_t length) noexcept { add({1, length, length}); }
  void add(const sample_lengths &more) noexcept {
    samples += more.samples;
    tokens += more.tokens;
    longest = std::max(longest, more.longest);
  }
};

/// One micro batch of a step.
struct log_bin {
  std::uint32_t rank = 0;
  std::uint32_t index = 0;
  digest128 digest;               ///< of its content
  std::uint64_t source_bytes = 0; ///< of the episodes that must be fetched for it, at most
  frame plan;                     ///< BinPlan
};

/// A step that every rank has staged. Holds all that is needed to make it again.
struct log_commit {
  std::uint64_t step = 0;
  digest128 digest;          ///< over all micro batches
  std::vector<log_bin> bins; ///< by rank, then index
  std::vector<log_group> groups;
  std::vector<frame> annotations; ///< GroupAnnotations, by group
  std::uint64_t traces = 0;       ///< kept ones
  std::uint64_t samples = 0;
  std::uint64_t tokens = 0;  ///< of samples, without padding and dummies
  std::uint64_t padding = 0; ///< tokens
  std::uint64_t dummies = 0;
  std::uint64_t wire_bytes = 0;
  std::vector<staleness_count> staleness; ///< by staleness, ascending
  sample_lengths kept_lengths;            ///< of packed samples
};

/// Groups that end outside a step.
struct log_settled {
  std::vector<log_group> groups;
};

/// An answer that cannot be had twice, before it is used. One without a key follows from no other.
struct log_scored {
  std::uint64_t ordinal = 0;
  std::uint32_t source = 0;
  std::string key;          ///< whose state it is, for example environment and agent
  std::uint64_t number = 0; ///< which answer of that key it is, from 1; 0 without a key
  std::vector<std::uint8_t> before;
  std::vector<std::uint8_t> after;
  frame annotations; ///< GroupAnnotations
};

/// Every rank has applied the step.
struct log_trained {
  std::uint64_t step = 0;
  std::int64_t rl = 0; ///< tokens that each loss component trains, over all ranks
  std::int64_t ce = 0;
  std::int64_t ref_kl = 0;
};

/// A checkpoint of all ranks holds all steps up to this one.
struct log_durable {
  std::uint64_t step = 0;
};

/// The trainer went back to step first - 1. Those up to `trained` had been trained; groups of the
/// others are free again.
struct log_rolled_back {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  std::uint64_t trained = 0;
};

/// The order is that of wire::LogMessage: append only.
using log_record = std::variant<log_open, log_generation, log_commit, log_settled, log_scored,
                                log_trained, log_durable, log_rolled_back>;

/// "open", "generation", "commit" and so on.
std::string_view name_of(const log_record &what) noexcept;
/// By place in log_record.
std::string_view log_record_name(std::size_t kind) noexcept;

/// The parts of a record: LogRecord, then what it carries. What it returns decode_log_record reads;
/// but a group's `why` is cut to limits::text_bytes.
/// Errors: too_large for more than a record can hold; bad_value, bad_format for what the check of
/// decode_log_record refuses.
result<message> encode(const log_record &what);

/// Reads what stands in a log, of which nothing is trusted: lists and names within
/// schema/limits.hpp, numbers that count from 1, known states, plans and annotations that verify
/// and belong to their bin and group. Whether a record fits those before it is not looked at.
/// The frames of the result are those of `parts`. Errors: bad_format, bad_value, too_large,
/// unsupported (a kind that a later version writes).
result<log_record> decode_log_record(const message &parts);

} // namespace millrace
