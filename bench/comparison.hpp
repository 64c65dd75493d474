// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "bench/load.hpp"
#include "bench/meter.hpp"
#include "runtime/result.hpp"

namespace millrace::bench {

/// One line of a table: hubs beside bare ZeroMQ.
struct setting {
  std::string transport; ///< "tcp": loopback; "ipc"
  std::size_t hops = 1;
  std::size_t size = 0;           ///< bytes of a message
  std::uint64_t memory_limit = 0; ///< bytes, of each hub
  std::string name{};             ///< what is special about it
};

/// A round: the same load through both, one after the other. Who comes first changes every round.
struct round {
  cost hubs, bare;
};

struct comparison {
  setting what;
  std::uint64_t bytes = 0; ///< of one measurement
  std::vector<round> rounds;

  double hub_rate() const;       ///< bytes/s, median of the rounds
  double bare_rate() const;      ///< bytes/s, median of the rounds
  quartiles ratio() const;       ///< of the hubs' rate to the bare one's, round by round
  double hub_processor() const;  ///< seconds for each GB, median
  double bare_processor() const; ///< seconds for each GB, median
};

struct effort {
  std::size_t rounds = 9;
  std::uint64_t bytes = 512 << 20; ///< of one measurement, as near as whole messages come
};

/// Errors: io: sockets that cannot be had.
result<comparison> compare(const setting &what, const effort &how, const frame &slab);

} // namespace millrace::bench
