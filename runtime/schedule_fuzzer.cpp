// SPDX-License-Identifier: Apache-2.0
#include "runtime/schedule_fuzzer.hpp"

#include <chrono>
#include <thread>

namespace millrace {

void schedule_fuzzer::perturb() {
  // splitmix64 over a shared counter
  auto x = state_.fetch_add(0x9E37'79B9'7F4A'7C15ULL, std::memory_order_relaxed);
  x = (x ^ (x >> 30)) * 0xBF58'476D'1CE4'E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D0'49BB'1331'11EBULL;
  x ^= x >> 31;
  if (x % 64 == 0)
    std::this_thread::sleep_for(std::chrono::microseconds(x / 64 % 2000));
  else
    for (auto yields = x % 4; yields > 0; --yields)
      std::this_thread::yield();
}

} // namespace millrace
