// SPDX-License-Identifier: Apache-2.0
// A link between two hubs beside a bare pair of ZeroMQ sockets.
#include "bench/options.hpp"

using millrace::bench::setting;

int main(int argc, char **argv) {
  constexpr std::uint64_t never_reached = std::uint64_t{1} << 40;
  constexpr std::size_t bounded = 1 << 20;
  std::vector<setting> settings;
  for (const auto *transport : {"tcp", "ipc"})
    for (const std::size_t size : {64U << 10, 1U << 20, 16U << 20, 64U << 20})
      settings.push_back({.transport = transport, .size = size, .memory_limit = never_reached});
  settings.push_back(
      {.transport = "tcp", .size = bounded, .memory_limit = 2 * bounded, .name = "limit 2 MiB"});
  return millrace::bench::run(argc, argv, "link", settings);
}
