// SPDX-License-Identifier: Apache-2.0
#include "actors/trainer/feeder.hpp"

#include <boost/test/unit_test.hpp>

#include "actors/packer/gather.hpp"
#include "tests/support/actors.hpp"
#include "tests/support/episodes.hpp"

namespace millrace::test {
namespace {

struct feeder_fixture {
  actor_world world;
  probe<step_staged> planner{world};
  probe<train_step> trainer{world};
  probe<run_failed> supervisor{world};
  std::shared_ptr<run_counters> counters = std::make_shared<run_counters>();
  owned_actor subject{world.system().spawn<feeder>(
      world.context(), 1U, feeder_peers{planner.actor(), trainer.actor(), supervisor.actor()},
      counters)};

  /// A micro batch of one sample, whose answer has `tokens` tokens.
  static message parts(std::uint64_t step, std::uint32_t index, std::uint32_t tokens) {
    const std::vector nodes{some_node(0, "user", 3), some_node(1, "assistant", tokens)};
    auto data = some_episode();
    data.nodes = nodes;
    count_whole_episode(data);
    const auto episode = sealed({data});
    const auto views = episode.nodes(0);
    const auto graph = branches_of(std::vector{shape_of(views[0]), shape_of(views[1])}).value();
    bin plan;
    plan.step = step;
    plan.rank = 1;
    plan.index = index;
    plan.samples.resize(1);
    plan.samples[0].nodes = views;
    plan.samples[0].path = &graph.trainable[0];
    plan.samples[0].tokens = 3 + tokens;
    plan.samples[0].env = "math";
    return gather(plan).value();
  }
  void pack(std::uint64_t step, std::uint32_t index, std::uint32_t tokens = 5) {
    world.tell(subject, micro_batch_packed{step, 1, index, parts(step, index, tokens)});
  }
  void expect(std::uint64_t step, std::uint32_t count) {
    world.tell(subject, stage_step{step, count});
  }
};

BOOST_FIXTURE_TEST_SUITE(feeder_suite, feeder_fixture)

BOOST_AUTO_TEST_CASE(a_step_is_staged_when_all_its_micro_batches_are_here) {
  expect(1, 2);
  pack(1, 1);
  BOOST_TEST(planner.got<step_staged>().empty());
  pack(1, 0);
  BOOST_REQUIRE_EQUAL(planner.got<step_staged>().size(), 1);
  const auto &staged = planner.got<step_staged>()[0];
  BOOST_TEST(staged.rank == 1U);
  BOOST_REQUIRE_EQUAL(staged.digests.size(), 2);
  BOOST_TEST(staged.digests[0].index == 0U);
  BOOST_TEST(staged.wire_bytes == counters->stages.trainer_decode.bytes);
}

BOOST_AUTO_TEST_CASE(micro_batches_may_come_before_the_planner_says_how_many) {
  pack(1, 0);
  BOOST_TEST(planner.got<step_staged>().empty());
  expect(1, 1);
  BOOST_TEST(planner.got<step_staged>().size() == 1U);
}

BOOST_AUTO_TEST_CASE(digests_tell_contents_apart) {
  expect(1, 2);
  pack(1, 0, 5);
  pack(1, 1, 6);
  const auto &digests = planner.got<step_staged>().at(0).digests;
  BOOST_TEST((digests[0].digest != digests[1].digest));
}

BOOST_AUTO_TEST_CASE(a_committed_step_goes_to_the_trainer_by_index) {
  expect(1, 2);
  pack(1, 1, 6);
  pack(1, 0, 5);
  world.tell(subject, commit_step{1, {}});
  BOOST_REQUIRE_EQUAL(trainer.got<train_step>().size(), 1);
  const auto &batches = trainer.got<train_step>()[0].micro_batches;
  BOOST_REQUIRE_EQUAL(batches.size(), 2);
  BOOST_TEST(batches[0].tokens() == 8U);
  BOOST_TEST(batches[1].tokens() == 9U);
}

BOOST_AUTO_TEST_CASE(nothing_goes_to_the_trainer_before_its_commit) {
  expect(1, 1);
  pack(1, 0);
  BOOST_TEST(trainer.got<train_step>().empty());
}

BOOST_AUTO_TEST_CASE(a_micro_batch_that_comes_twice_ends_the_run) {
  expect(1, 2);
  pack(1, 0);
  pack(1, 0);
  BOOST_REQUIRE_EQUAL(supervisor.got<run_failed>().size(), 1);
  BOOST_TEST((supervisor.got<run_failed>()[0].what.code == errc::conflict));
}

BOOST_AUTO_TEST_CASE(bytes_that_are_no_micro_batch_end_the_run_and_nothing_else) {
  expect(1, 1);
  world.tell(subject, micro_batch_packed{1, 1, 0, {bytes_of(std::vector<int>(100, 7))}});
  BOOST_REQUIRE_EQUAL(supervisor.got<run_failed>().size(), 1);
  BOOST_TEST(supervisor.got<run_failed>()[0].who == "feeder 1");
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
} // namespace millrace::test
