// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <spdlog/spdlog.h>

/// Log lines for people, on stderr. One line says what, where and, if something must be done, what
/// to do.
namespace millrace::log {

using spdlog::debug;
using spdlog::error;
using spdlog::info;
using spdlog::warn;

/// Sends log lines to stderr as "time level text". Call once, before any thread starts.
void set_up();

} // namespace millrace::log
