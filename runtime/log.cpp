// SPDX-License-Identifier: Apache-2.0
#include "runtime/log.hpp"

#include <spdlog/sinks/stdout_color_sinks.h>

namespace millrace::log {

void set_up() {
  auto logger = std::make_shared<spdlog::logger>(
      "millrace", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
  logger->set_pattern("%H:%M:%S.%e %^%l%$ %v");
  spdlog::set_default_logger(std::move(logger));
}

} // namespace millrace::log
