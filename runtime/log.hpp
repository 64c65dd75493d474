// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include <spdlog/spdlog.h>

#include "runtime/utf8.hpp"

/// Log lines for people, on stderr. One line says what, where and, if something must be done, what
/// to do.
namespace millrace::log {

template <class... Args> void info(fmt::format_string<Args...> format, Args &&...args) {
  spdlog::info("{}", to_one_line(fmt::format(format, std::forward<Args>(args)...)));
}
template <class... Args> void warn(fmt::format_string<Args...> format, Args &&...args) {
  spdlog::warn("{}", to_one_line(fmt::format(format, std::forward<Args>(args)...)));
}
template <class... Args> void error(fmt::format_string<Args...> format, Args &&...args) {
  spdlog::error("{}", to_one_line(fmt::format(format, std::forward<Args>(args)...)));
}

/// Sends log lines to stderr as "time level text". Call once, before any thread starts.
void set_up();

} // namespace millrace::log
