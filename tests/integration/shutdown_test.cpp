// SPDX-License-Identifier: Apache-2.0
#include "actors/pipeline.hpp"

#include <future>

#include <boost/test/unit_test.hpp>

namespace millrace::test {
namespace {

using namespace std::chrono_literals;

/// Blocks in its first message until it is let go, whatever else comes.
class stuck_actor : public stage_actor {
public:
  stuck_actor(caf::actor_config &config, const actor_context &context, std::string name,
              std::shared_future<void> release)
      : stage_actor(config, context, std::move(name)), release_(std::move(release)) {}

  caf::behavior make_behavior() override { return {on(&stuck_actor::block)}; }

private:
  void block(const read_more &) { release_.wait(); }

  std::shared_future<void> release_;
};

struct shutdown_fixture {
  std::promise<void> release;
  std::shared_future<void> released = release.get_future().share();
  caf::actor_system_config config;
  caf::actor_system system{config};
  caf::scoped_actor self{system};
  actor_context context;

  actor_stage readers(int count, int queued) {
    actor_stage stage{"env-reader", {}, {}};
    for (int i = 0; i < count; ++i) {
      stage.names.push_back(fmt::format("env-reader-{}", i));
      stage.actors.push_back(
          system.spawn<stuck_actor, caf::detached>(context, stage.names.back(), released));
      for (int m = 0; m < queued; ++m)
        caf::anon_send(stage.actors.back(), read_more{});
    }
    return stage;
  }
};

// Actors that do not end cannot hold the process for ever.
BOOST_FIXTURE_TEST_CASE(actors_that_hang_are_named_at_the_deadline, shutdown_fixture) {
  std::vector<actor_stage> stages{readers(4, 2'500)};
  const auto begun = std::chrono::steady_clock::now();
  const auto alive = shut_down(stages, self, begun + 100ms);
  BOOST_TEST((alive == std::vector<std::string>{"env-reader-0", "env-reader-1", "env-reader-2",
                                                "env-reader-3"}));
  release.set_value();
  BOOST_TEST(shut_down(stages, self, begun + 60s).empty());
}

BOOST_FIXTURE_TEST_CASE(a_stage_ends_before_the_next_one_is_told_to, shutdown_fixture) {
  std::vector<actor_stage> stages{readers(1, 1), {"planner", {}, {"planner"}}};
  stages[1].actors.push_back(system.spawn<stuck_actor>(context, "planner", released));
  const auto begun = std::chrono::steady_clock::now();
  // The planner could end at once, but its turn does not come while the reader hangs.
  const auto alive = shut_down(stages, self, begun + 50ms);
  BOOST_TEST(alive.at(0) == "env-reader-0");
  release.set_value();
  BOOST_TEST(shut_down(stages, self, begun + 60s).empty());
}

} // namespace
} // namespace millrace::test
