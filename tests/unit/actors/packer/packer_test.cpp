// SPDX-License-Identifier: Apache-2.0
#include "actors/packer/packer.hpp"

#include <boost/test/unit_test.hpp>

#include "actors/packer/micro_batch.hpp"
#include "actors/planner/step.hpp"
#include "actors/scorer/annotate.hpp"
#include "tests/support/actors.hpp"
#include "tests/support/groups.hpp"

namespace millrace::test {
namespace {

/// Stands in for an assembler that holds two episodes.
class holder : public stage_actor {
public:
  holder(caf::actor_config &config, const actor_context &context,
         std::vector<sealed_episode> episodes, std::string problem)
      : stage_actor(config, context, "holder"), episodes_(std::move(episodes)),
        problem_(std::move(problem)) {}
  caf::behavior make_behavior() override { return {on(&holder::fetch)}; }

private:
  episodes_fetched fetch(const fetch_episodes &in) {
    episodes_fetched out{{}, problem_};
    if (problem_.empty())
      for (auto member : in.members)
        out.episodes.push_back(episodes_.at(member));
    return out;
  }
  std::vector<sealed_episode> episodes_;
  std::string problem_;
};

struct packer_fixture {
  actor_world world;
  probe<micro_batch_packed> feeder{world};
  probe<run_failed> supervisor{world};
  std::shared_ptr<run_counters> counters = std::make_shared<run_counters>();
  owned_actor subject{
      world.system().spawn<packer>(world.context(), 0U, supervisor.actor(), counters)};
  std::vector<frame_data> episodes{episode_of("a", 1, {prompt(-1, 3), turn(0, {1, 1, 1})}),
                                   episode_of("b", 0, {prompt(-1, 2), turn(0, {1, 1})})};
  ready_group group = [&] {
    const auto header = header_of(group_of(episodes));
    return make_ready_group(header.bytes(), annotate(header, env_config{}).value(), 64).value();
  }();

  /// The one micro batch of a step of this group.
  pack_bin bin_from(const caf::actor &assembler) {
    plan_config config;
    config.seq_len = 64;
    std::vector<ready_group *> groups{&group};
    const auto bins = plan_groups(groups, config).value();
    auto encoded = encode_bin(bins, std::vector<const ready_group *>{&group}, 7, 0, 0);
    return {
        std::move(encoded.plan), {{{0, 0}, group.annotations->bytes(), assembler}}, feeder.actor()};
  }
  std::vector<sealed_episode> sealed_all() {
    return {sealed_one(episodes[0]), sealed_one(episodes[1])};
  }
};

BOOST_FIXTURE_TEST_SUITE(packer_suite, packer_fixture)

BOOST_AUTO_TEST_CASE(a_bin_becomes_a_micro_batch_at_the_feeder) {
  const owned_actor assembler(
      world.system().spawn<holder>(world.context(), sealed_all(), std::string()));
  world.tell(subject, bin_from(assembler));
  BOOST_REQUIRE_EQUAL(feeder.got<micro_batch_packed>().size(), 1);
  const auto &packed = feeder.got<micro_batch_packed>()[0];
  BOOST_TEST(packed.step == 7U);
  const auto batch = micro_batch::parse(packed.parts).value();
  BOOST_TEST(batch.sequences() == 2U);
  BOOST_TEST(batch.tokens() == 10U);
  BOOST_TEST(batch.advantages().has_value());
  // Longest first: the origins say which episode a sequence came from.
  BOOST_TEST(batch.origins()[0].episode() == 0U);
}

BOOST_AUTO_TEST_CASE(an_assembler_that_lacks_an_episode_ends_the_run_with_its_words) {
  const owned_actor assembler(world.system().spawn<holder>(
      world.context(), std::vector<sealed_episode>{}, std::string("it is not here")));
  world.tell(subject, bin_from(assembler));
  BOOST_REQUIRE_EQUAL(supervisor.got<run_failed>().size(), 1);
  BOOST_TEST(supervisor.got<run_failed>()[0].what.message == "it is not here");
  BOOST_TEST(feeder.got<micro_batch_packed>().empty());
}

BOOST_AUTO_TEST_CASE(episodes_that_do_not_fit_the_plan_end_the_run) {
  auto swapped = sealed_all();
  swapped[0] = sealed_one(episode_of("c", 1, {prompt(-1, 3)})); // nothing to train
  const owned_actor assembler(
      world.system().spawn<holder>(world.context(), swapped, std::string()));
  world.tell(subject, bin_from(assembler));
  BOOST_REQUIRE_EQUAL(supervisor.got<run_failed>().size(), 1);
  BOOST_TEST((supervisor.got<run_failed>()[0].what.code == errc::bad_value));
}

BOOST_AUTO_TEST_CASE(bins_that_come_together_do_not_mix_their_groups) {
  const owned_actor assembler(
      world.system().spawn<holder>(world.context(), sealed_all(), std::string()));
  const auto bin = bin_from(assembler);
  for (int i = 0; i < 3; ++i)
    caf::anon_send(static_cast<const caf::actor &>(subject), bin);
  world.run();
  BOOST_REQUIRE_EQUAL(feeder.got<micro_batch_packed>().size(), 3);
  for (const auto &packed : feeder.got<micro_batch_packed>())
    BOOST_TEST(micro_batch::parse(packed.parts).value().tokens() == 10U);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
} // namespace millrace::test
