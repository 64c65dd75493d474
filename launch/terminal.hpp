// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

#include "runtime/result.hpp"

namespace millrace {

/// What the program's exit code says.
enum exit_code : int {
  exit_ok = 0,
  exit_failed = 1,   ///< the work was begun and failed
  exit_restart = 75, ///< the process is to be started again (EX_TEMPFAIL)
  exit_misuse = 2,   ///< it was not begun: bad use, bad config, a file that is not there
};

/// Before anything is opened: gives 0, 1 and 2 a descriptor if the parent closed them (the next
/// file would get that number, and prints would land in it), and turns a closed pipe and a
/// file size limit into errors of the write.
void prepare_terminal();

/// Writes to standard output and makes sure that it went out. Errors: io (a full disk, closed).
status print(std::string_view text);

/// print(), and what main() returns for it: `code`, or a complaint and exit_failed.
int print_and_exit(std::string_view text, int code = exit_ok);

/// The same for what went to std::cout, which says at its end only that something was lost.
int flush_and_exit(int code);

/// Writes "millrace: MESSAGE" as one line to standard error. Gives the exit code of such an error.
int complain(const error &why);
/// One line each; the exit code of the first.
int complain(std::span<const error> all);

} // namespace millrace
