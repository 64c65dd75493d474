// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "actors/node/host_messages.hpp"
#include "runtime/json_out.hpp"

namespace millrace {

// What tools print of a running system. Names and texts come from other processes: each is brought
// on one line, without control characters.

/// Processes send news several times in this time.
inline constexpr std::uint64_t old_news_ms = 5'000;

/// True if a process that should be there was not heard of for old_news_ms.
bool is_silent(const status_line &line) noexcept;

/// One line for each process. Rates are those between the two answers, or, where `before` has no
/// older news of a process, since the start of the process: these are marked "~".
/// @param before an earlier answer, or nullptr.
std::string status_text(const status_answer &now, const status_answer *before);

/// The same for programs: {run, processes: [{process, state, ..., rates, waits}]}.
json::tree status_json(const status_answer &now, const status_answer *before);

/// One line for each link of the chains of waits (actors/node/wait_chain); an empty line between
/// two chains.
std::string why_text(const status_answer &answer);

/// The first chain on one line, for logs: "trainer-3 waits for step 12 (412 s); planner has ...".
std::string why_line(const status_answer &answer);

/// The same for programs: {run, note, chains: [{links: [{who, others, what, on, ms}], end}]}.
json::tree why_json(const status_answer &answer);

} // namespace millrace
