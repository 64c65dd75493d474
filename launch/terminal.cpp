// SPDX-License-Identifier: Apache-2.0
#include "launch/terminal.hpp"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <iostream>
#include <string>
#include <system_error>

#include <fcntl.h>
#include <unistd.h>

#include "runtime/utf8.hpp"

namespace millrace {
namespace {

int code_of(errc code) {
  switch (code) {
  case errc::bad_argument:
  case errc::bad_config:
  case errc::not_found:
    return exit_misuse;
  case errc::restart:
    return exit_restart;
  default:
    return exit_failed;
  }
}

} // namespace

void prepare_terminal() {
  for (int fd = 0; fd <= 2; ++fd)
    if (::fcntl(fd, F_GETFD) == -1) // read-only: what is printed fails, and says so
      static_cast<void>(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  static_cast<void>(std::signal(SIGPIPE, SIG_IGN));
  static_cast<void>(std::signal(SIGXFSZ, SIG_IGN));
}

status print(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(STDOUT_FILENO, text.data(), text.size());
    if (written < 0 && errno == EINTR)
      continue;
    if (written < 0)
      return fail(errc::io, "cannot write to standard output: {}",
                  std::generic_category().message(errno));
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

int print_and_exit(std::string_view text, int code) {
  if (const status printed = print(text); !printed)
    return complain(printed.error());
  return code;
}

int flush_and_exit(int code) {
  std::cout.flush();
  if (!std::cout)
    return complain({errc::io, "cannot write to standard output: it is full or closed"});
  return code;
}

int complain(const error &why) {
  const std::string line = "millrace: " + to_one_line(why.message) + "\n";
  // Nothing can be said about a failure to say something.
  static_cast<void>(std::fwrite(line.data(), 1, line.size(), stderr));
  return code_of(why.code);
}

int complain(std::span<const error> all) {
  for (const error &each : all)
    complain(each);
  return all.empty() ? exit_failed : code_of(all.front().code);
}

} // namespace millrace
