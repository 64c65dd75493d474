// SPDX-License-Identifier: Apache-2.0
// A chain of hubs, each passing on what it receives, beside a chain of bare ZeroMQ sockets.
#include "bench/options.hpp"

using millrace::bench::setting;

int main(int argc, char **argv) {
  constexpr std::uint64_t never_reached = std::uint64_t{1} << 40;
  constexpr std::size_t hops = 3; // reader, assembler, packer, feeder
  std::vector<setting> settings;
  for (const auto *transport : {"tcp", "ipc"})
    for (const std::size_t size : {64U << 10, 640U << 10, 16U << 20})
      settings.push_back(
          {.transport = transport, .hops = hops, .size = size, .memory_limit = never_reached});
  return millrace::bench::run(argc, argv, "chain of 3 hops", settings);
}
