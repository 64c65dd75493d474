// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace millrace {

/// A named moment at which tests kill the process (SIGKILL to itself, as if the machine had lost
/// it). Without these in the environment it does nothing.
/// MILLRACE_CRASH_AT=NAME:N kills at the N-th pass of NAME (N from 1; ":N" may be left out);
/// MILLRACE_STOP_AT, of the same form, stops it there (SIGSTOP) until it is sent SIGCONT.
/// MILLRACE_CRASH_TRACE=FILE appends a line NAME to FILE when a point is first passed.
/// Thread: any. Names: "planner.commit.written".
void crash_point(std::string_view name) noexcept;

} // namespace millrace
