// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

namespace millrace {

/// Yields the thread at random before a handler runs, so that messages of different senders meet in
/// other orders. The order between one sender and one receiver stays. Thread: any.
class schedule_fuzzer {
public:
  explicit schedule_fuzzer(std::uint64_t seed) : state_(seed) {}

  void perturb();

private:
  std::atomic<std::uint64_t> state_;
};

} // namespace millrace
