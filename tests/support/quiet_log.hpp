// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/log.hpp"

namespace millrace::test {

/// No log lines as long as it lives: for tests that provoke the same warning thousands of times.
class quiet_log {
public:
  quiet_log() : before_(spdlog::get_level()) { spdlog::set_level(spdlog::level::off); }
  quiet_log(const quiet_log &) = delete;
  quiet_log &operator=(const quiet_log &) = delete;
  ~quiet_log() { spdlog::set_level(before_); }

private:
  spdlog::level::level_enum before_;
};

} // namespace millrace::test
