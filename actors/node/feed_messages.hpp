// SPDX-License-Identifier: Apache-2.0
#pragma once

// What trainers in Python ask the process that has their rank, and what they hear. Between
// processes these are bodies of schema/host.fbs, as a tool's question and its one answer.

#include <cstdint>
#include <string>

#include "runtime/digest.hpp"

namespace millrace {

/// What a trainer in Python wants. Each question also says that it lives.
enum class feed_wish : std::uint8_t {
  here,        ///< nothing: answered when it asks so again, or when it is over
  next,        ///< what comes after `generation` and `step`: answered when that is there
  micro_batch, ///< number `index` of `step`; the answer has its parts behind it
  trained,     ///< `step` is applied
  durable,     ///< a checkpoint holds all steps up to `step`
  leave        ///< it ends; `reason` says why
};

/// From a trainer in Python. Answered by one feed_answer.
struct feed_question {
  std::uint32_t rank = 0;
  std::uint32_t peer = 0;  ///< of those that share the rank
  std::uint32_t peers = 1; ///< how many, as the asker knows it
  std::uint64_t asker = 0; ///< random, for each start of it; not 0
  feed_wish wish = feed_wish::here;
  std::uint64_t generation = 0; ///< next: the last one that it knows; 0: none
  std::uint64_t step = 0;       ///< next: the last one that it knows
  std::uint32_t index = 0;
  std::string reason;

  bool operator==(const feed_question &) const = default;
};

enum class feed_state : std::uint8_t {
  noted,       ///< nothing more to say
  begin,       ///< all ranks have met in `generation`; `step`: the one to go on after
  step,        ///< number `step` with so many micro batches
  micro_batch, ///< of `step`
  save,        ///< a checkpoint of `step` is wanted
  ended,       ///< the run, after a good end; nothing follows
  failed,      ///< it is over for the reason
  refused      ///< this question, for the reason
};

struct feed_answer {
  feed_state state = feed_state::noted;
  std::string reason;
  bool restart = false; ///< failed: the run goes on; the asker is to be started again, too
  std::uint64_t generation = 0;
  std::uint64_t step = 0;
  digest128 digest;                                             ///< step: over all ranks
  std::int64_t rl_tokens = 0, ce_tokens = 0, ref_kl_tokens = 0; ///< step: over all ranks
  std::uint32_t micro_batches = 0;                              ///< step: of this rank
  /// begin: of the checkpoint of `step`; save: where its large files go. Absolute, or empty.
  std::string folder;

  bool operator==(const feed_answer &) const = default;
};

} // namespace millrace
