// SPDX-License-Identifier: Apache-2.0
#include "runtime/crash_point.hpp"

#include <charconv>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <fcntl.h>
#include <mutex>
#include <set>
#include <string>
#include <unistd.h>

namespace millrace {

namespace {

/// What the environment asks for, read once.
struct crash_plan {
  std::string name;
  std::uint64_t passes = 1;
  int signal = SIGKILL;
  std::string trace;
  std::mutex mutex;
  std::uint64_t passed = 0;
  std::set<std::string, std::less<>> seen;

  crash_plan() {
    if (const char *at = std::getenv("MILLRACE_CRASH_AT"); at != nullptr)
      name = at;
    if (const char *at = std::getenv("MILLRACE_STOP_AT"); at != nullptr) {
      name = at;
      signal = SIGSTOP;
    }
    if (const char *file = std::getenv("MILLRACE_CRASH_TRACE"); file != nullptr)
      trace = file;
    if (const auto colon = name.find(':'); colon != std::string::npos) {
      std::from_chars(name.data() + colon + 1, name.data() + name.size(), passes);
      name.resize(colon);
    }
  }
  bool asked() const noexcept { return !name.empty() || !trace.empty(); }

  void write_down(std::string_view point) {
    if (trace.empty() || !seen.emplace(point).second)
      return;
    const auto line = std::string(point) + '\n';
    const int fd = ::open(trace.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (fd < 0)
      return;
    [[maybe_unused]] const auto wrote = ::write(fd, line.data(), line.size());
    ::close(fd);
  }
};

crash_plan &plan() {
  static crash_plan once;
  return once;
}

} // namespace

void crash_point(std::string_view name) noexcept {
  auto &asked = plan();
  if (!asked.asked())
    return;
  const std::lock_guard lock(asked.mutex);
  asked.write_down(name);
  if (name == asked.name && ++asked.passed == asked.passes)
    ::kill(::getpid(), asked.signal);
}

} // namespace millrace
