// SPDX-License-Identifier: Apache-2.0
#include "runtime/log.hpp"

#include "runtime/utf8.hpp"

#include <spdlog/sinks/stdout_color_sinks.h>

namespace millrace::log {

std::string printable(std::string_view text) {
  auto out = to_utf8(text);
  for (auto &c : out)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      c = '?';
  return out;
}

void set_up() {
  auto logger = std::make_shared<spdlog::logger>(
      "millrace", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
  logger->set_pattern("%H:%M:%S.%e %^%l%$ %v");
  spdlog::set_default_logger(std::move(logger));
}

} // namespace millrace::log
