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
/// @param run run.id that the process must be of; empty: whichever it is of.
/// @param server_key the public CURVE key of the process; empty without CURVE.
/// Errors: timed_out (nobody answers: endpoint and seconds are named), peer_lost (refused, with the
/// reason), bad_argument (no endpoint), too_large.
result<message> ask(const std::string &endpoint, const std::string &server_key,
                    const std::optional<curve_config> &curve, const std::string &run,
                    message question, std::chrono::milliseconds deadline);

} // namespace millrace
