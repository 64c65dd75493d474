// SPDX-License-Identifier: Apache-2.0
// Two actors write to one variable without a lock: a race on purpose, which ThreadSanitizer must
// report. If it does not, the tsan build sees nothing of what happens between actors.
#include <cstdio>

#include "runtime/caf.hpp"

struct hit {};
MILLRACE_MESSAGE(hit)

namespace {

int shared = 0;

class writer : public caf::event_based_actor {
public:
  using caf::event_based_actor::event_based_actor;

  caf::behavior make_behavior() override {
    return {[](hit) { ++shared; }};
  }
};

} // namespace

int main() {
  caf::actor_system_config config;
  config.set("scheduler.max-threads", 2);
  caf::actor_system system(config);
  {
    const auto one = system.spawn<writer>();
    const auto other = system.spawn<writer>();
    for (int i = 0; i < 10'000; ++i) {
      caf::anon_send(one, hit{});
      caf::anon_send(other, hit{});
    }
  }
  system.await_all_actors_done();
  std::printf("%d hits\n", shared);
  return 0;
}
