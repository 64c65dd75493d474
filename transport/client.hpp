// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "runtime/frame.hpp"
#include "runtime/result.hpp"
#include "transport/curve.hpp"

namespace millrace {

/// Asks a process one question, as tools do: connects, asks, waits for the one answer. Blocks.
/// Tries once: that nobody is there, or that it lets nobody in, is told at once.
/// @param server_key the public CURVE key of the process; empty without CURVE.
/// @param run run.id that the process must be of; empty: whichever it is of.
/// Errors: timed_out (no answer: endpoint and seconds are named), peer_lost (nobody is there, or it
/// refuses: with the reason), bad_argument (an endpoint or a key that is none), too_large (the
/// question), bad_format (an answer that is none).
result<message> ask(const std::string &endpoint, const std::string &server_key,
                    const std::optional<curve_config> &curve, const std::string &run,
                    const message &question, std::chrono::milliseconds deadline);

} // namespace millrace
