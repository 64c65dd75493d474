// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include <spdlog/spdlog.h>

/// Log lines for people, on stderr. One line says what, where and, if something must be done, what
/// to do.
namespace millrace::log {

/// One line of text for a terminal: control characters and bytes that are not UTF-8, which may come
/// from a source, are replaced.
std::string printable(std::string_view text);

template <class... Args> void warn(fmt::format_string<Args...> format, Args &&...args) {
  spdlog::warn("{}", printable(fmt::format(format, std::forward<Args>(args)...)));
}
template <class... Args> void error(fmt::format_string<Args...> format, Args &&...args) {
  spdlog::error("{}", printable(fmt::format(format, std::forward<Args>(args)...)));
}

/// Sends log lines to stderr as "time level text". Call once, before any thread starts.
void set_up();

} // namespace millrace::log
