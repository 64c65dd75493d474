// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "actors/node/host_messages.hpp"

namespace millrace {

/// An actor, and what it waits for.
struct wait_link {
  std::string who;
  std::size_t others = 0; ///< trainers that wait for the same
  std::string what;       ///< "step 12"; or a text that begins with "has "
  std::string on;
  std::uint64_t ms = 0;        ///< waits for so long
  std::uint64_t silent_ms = 0; ///< its process was not heard of for so long; 0: its news are fresh
};

/// Who waits for whom, from the one that suffers to the one that could do something.
struct wait_chain {
  std::vector<wait_link> links;
  std::string end; ///< why it goes no further; empty: the last link waits for the world
};

struct wait_report {
  std::vector<wait_chain> chains;
  std::string note; ///< what there is to say beside them; empty: nothing
};

/// Why a run does not go on. The chains begin at the trainers that wait, the longest wait first, or
/// if none does at whatever waits longest. A link leads to the actor that it names, or to the actor
/// of the role that it names which waits longest, and not for the same. A chain stops at an actor
/// that does not wait, at a loop, and where another chain went on.
wait_report explain_waits(const status_answer &answer);

/// There are no more chains than this; the note says so.
inline constexpr std::size_t max_wait_chains = 8;

} // namespace millrace
