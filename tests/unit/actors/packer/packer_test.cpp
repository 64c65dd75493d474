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

/// A packer, and stand-ins for two assemblers that both hold one group of two episodes.
struct packer_fixture {
  using assembler_probe = probe<fetch_episodes>;

  actor_world world;
  probe<micro_batch_ready, micro_batch_packed> feeder{world};
  assembler_probe assembler{world};
  assembler_probe other{world};
  probe<run_failed, drained> supervisor{world};
  std::shared_ptr<run_counters> counters = std::make_shared<run_counters>();
  std::optional<owned_actor> subject;
  std::vector<frame_data> episodes{episode_of("a", 1, {prompt(-1, 3), turn(0, {1, 1, 1})}),
                                   episode_of("b", 0, {prompt(-1, 2), turn(0, {1, 1})})};
  ready_group group = [&] {
    const auto header = header_of(group_of(episodes));
    return make_ready_group(header.bytes(), annotate(header, env_config{}, {}).value().annotations,
                            64)
        .value();
  }();

  packer_fixture() { begin(UINT64_MAX); }
  void begin(std::uint64_t memory_limit) {
    subject.emplace(world.system().spawn<packer>(
        world.context(), packer_options{"packer-0", memory_limit}, supervisor.actor(), counters));
  }

  /// The one micro batch of a step of this group.
  pack_bin order(std::uint64_t step, const caf::actor &from) {
    plan_config config;
    config.seq_len = 64;
    std::vector<ready_group *> groups{&group};
    const auto bins = plan_groups(groups, config).value();
    auto encoded = encode_bin(bins, std::vector<const ready_group *>{&group}, step, 0, 0);
    BOOST_REQUIRE(encoded.source_bytes > 0);
    return {std::move(encoded.plan),
            {{{0, 0}, group.annotations->bytes(), from}},
            feeder.actor(),
            encoded.source_bytes};
  }
  std::uint64_t bytes_of_one() { return order(1, assembler.actor()).source_bytes; }
  void give(std::uint64_t step) { world.tell(*subject, order(step, assembler.actor())); }

  /// What an assembler answers to its question number `which`.
  void answer(assembler_probe &from, std::size_t which, std::string problem = {}) {
    const auto question = from.got<fetch_episodes>().at(which);
    episodes_fetched out{question.job, question.group, {}, std::move(problem)};
    if (out.problem.empty())
      for (auto member : question.members)
        out.episodes.push_back(sealed_one(episodes.at(member)));
    world.tell(*subject, std::move(out));
  }
  std::size_t asked() { return assembler.got<fetch_episodes>().size(); }
  void take(std::uint64_t step) { world.tell(*subject, micro_batch_taken{{step, 0, 0}}); }
  /// The steps whose micro batch was announced, in order.
  std::vector<std::uint64_t> ready() {
    std::vector<std::uint64_t> out;
    for (const auto &one : feeder.got<micro_batch_ready>())
      out.push_back(one.bin.step);
    return out;
  }
  /// What comes for a micro batch that the feeder asks for.
  std::vector<micro_batch_packed> fetched(std::uint64_t step) {
    feeder.got<micro_batch_packed>().clear();
    world.tell(*subject, fetch_micro_batch{{step, 0, 0}, feeder.actor()});
    return feeder.got<micro_batch_packed>();
  }
  const error &failure() {
    BOOST_REQUIRE_EQUAL(supervisor.got<run_failed>().size(), 1);
    BOOST_TEST(supervisor.got<run_failed>()[0].who == "packer-0");
    return supervisor.got<run_failed>()[0].what;
  }
};

using steps = std::vector<std::uint64_t>;

BOOST_FIXTURE_TEST_SUITE(packer_suite, packer_fixture)

BOOST_AUTO_TEST_CASE(a_bin_becomes_a_micro_batch_that_the_feeder_fetches) {
  give(7);
  answer(assembler, 0);
  BOOST_REQUIRE_EQUAL(feeder.got<micro_batch_ready>().size(), 1);
  const auto announced = feeder.got<micro_batch_ready>()[0];
  BOOST_TEST((announced.bin == bin_ref{7, 0, 0}));
  BOOST_TEST(
      (announced.packer == peer({"packer-0", 0}, static_cast<const caf::actor &>(*subject))));
  BOOST_TEST(feeder.got<micro_batch_packed>().empty()); // nobody has asked
  const auto packed = fetched(7);
  BOOST_REQUIRE_EQUAL(packed.size(), 1);
  BOOST_TEST((packed[0].bin == bin_ref{7, 0, 0}));
  const auto batch = micro_batch::parse(packed[0].parts).value();
  BOOST_TEST(batch.sequences() == 2U);
  BOOST_TEST(batch.tokens() == 10U);
  BOOST_TEST(batch.advantages().has_value());
  // Longest first: the origins say which episode a sequence came from.
  BOOST_TEST(batch.origins()[0].episode() == 0U);
  std::uint64_t bytes = 0;
  for (const auto &part : packed[0].parts)
    bytes += part.size();
  BOOST_TEST(announced.bytes == bytes);
}

// The planner knows where the group is, or that the step is no more.
BOOST_AUTO_TEST_CASE(a_bin_of_which_an_assembler_lacks_an_episode_waits_to_be_sent_again) {
  give(7);
  answer(assembler, 0, "it is not here");
  BOOST_TEST(ready().empty());
  BOOST_TEST(supervisor.got<run_failed>().empty());
  BOOST_TEST(asked() == 1U);
  give(7);
  BOOST_TEST(asked() == 2U);
  answer(assembler, 1);
  BOOST_TEST(ready() == steps{7}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(what_is_of_an_earlier_epoch_is_dropped_and_not_begun) {
  give(7);
  answer(assembler, 0);
  world.tell(*subject, planner_hello{{{}, 3}, 0});
  BOOST_TEST(fetched(7).empty());
  give(8); // of epoch 0
  BOOST_TEST(asked() == 1U);
}

BOOST_AUTO_TEST_CASE(bins_bind_a_packer_to_the_folder_of_their_planner) {
  probe<planner_refused> other_planner(world);
  const planner_claim stranger{{{2}}, 9};
  give(7);
  answer(assembler, 0);
  world.tell(*subject, planner_hello{stranger, 0, other_planner.actor()});
  BOOST_REQUIRE_EQUAL(other_planner.got<planner_refused>().size(), 1);
  BOOST_TEST((other_planner.got<planner_refused>()[0].claim == stranger));
  auto late = order(8, assembler.actor());
  late.claim = stranger;
  world.tell(*subject, late);
  BOOST_TEST(asked() == 1U);
  BOOST_TEST(fetched(7).size() == 1U);
  take(7);
  world.tell(*subject, late); // nothing binds it any more
  BOOST_TEST(asked() == 2U);
  BOOST_TEST(other_planner.got<planner_refused>().size() == 1U);
}

BOOST_AUTO_TEST_CASE(what_is_for_a_rank_that_is_lost_goes_with_it) {
  give(7);
  give(8);
  answer(assembler, 0);
  const auto feeder_0 = peer(feeder.actor());
  world.tell(*subject, peer_down{role::trainer, named("feeder-9", feeder.actor()), "a test"});
  BOOST_TEST(fetched(7).size() == 1U); // another rank's end
  world.tell(*subject, peer_down{role::trainer, feeder_0, "a test"});
  BOOST_TEST(fetched(7).empty());
  answer(assembler, 1);
  BOOST_TEST(ready() == steps{7}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_planner_of_a_lower_epoch_is_fenced) {
  probe<planner_refused> late(world);
  world.tell(*subject, planner_hello{{{}, 3}, 0});
  world.tell(*subject, planner_hello{{{}, 2}, 0, late.actor()});
  BOOST_REQUIRE_EQUAL(late.got<planner_refused>().size(), 1);
  BOOST_TEST(late.got<planner_refused>()[0].why == "fenced: epoch 3 leads, this is 2");
}

BOOST_AUTO_TEST_CASE(episodes_that_do_not_fit_the_plan_end_the_run) {
  episodes[0] = episode_of("c", 1, {prompt(-1, 3)}); // nothing to train
  give(7);
  answer(assembler, 0);
  BOOST_TEST((failure().code == errc::bad_value));
}

BOOST_AUTO_TEST_CASE(an_order_that_comes_with_other_groups_than_its_plan_ends_the_run) {
  auto bad = order(7, assembler.actor());
  bad.groups.push_back(bad.groups[0]);
  world.tell(*subject, bad);
  BOOST_TEST((failure().code == errc::bad_value));
}

BOOST_AUTO_TEST_CASE(more_or_fewer_episodes_than_were_asked_for_end_the_run) {
  give(7);
  const auto question = assembler.got<fetch_episodes>().at(0);
  world.tell(*subject, episodes_fetched{question.job, question.group, {}, {}});
  BOOST_TEST((failure().code == errc::conflict));
}

BOOST_AUTO_TEST_CASE(bins_that_come_together_do_not_mix_their_answers) {
  for (const std::uint64_t step : steps{1, 2, 3})
    give(step);
  BOOST_REQUIRE_EQUAL(asked(), 3);
  for (const std::size_t which : steps{2, 0, 1})
    answer(assembler, which);
  BOOST_TEST((ready() == steps{3, 1, 2}));
  for (const std::uint64_t step : steps{1, 2, 3})
    BOOST_TEST(micro_batch::parse(fetched(step).at(0).parts).value().tokens() == 10U);
}

BOOST_AUTO_TEST_CASE(a_micro_batch_is_given_until_it_is_taken_and_then_forgotten) {
  give(7);
  answer(assembler, 0);
  BOOST_TEST(fetched(7).size() == 1U);
  BOOST_TEST(fetched(7).size() == 1U); // an answer may get lost with a feeder's link
  feeder.got<micro_batch_packed>().clear();
  BOOST_TEST(counters->memory->held > 0U);
  take(7);
  BOOST_TEST(counters->memory->held == 0U);
  BOOST_TEST(fetched(7).empty());
}

BOOST_AUTO_TEST_CASE(a_bin_that_is_not_here_is_not_given) {
  give(7);
  BOOST_TEST(fetched(7).empty()); // still fetching
  BOOST_TEST(fetched(8).empty());
}

BOOST_AUTO_TEST_CASE(an_order_that_is_gathered_already_is_announced_again) {
  give(7);
  answer(assembler, 0);
  give(7);
  BOOST_TEST(asked() == 1U);
  BOOST_TEST((ready() == steps{7, 7}));
}

BOOST_AUTO_TEST_CASE(an_order_that_comes_again_is_fetched_from_where_its_episodes_are_now) {
  give(7);
  world.tell(*subject, order(7, other.actor()));
  BOOST_REQUIRE_EQUAL(other.got<fetch_episodes>().size(), 1);
  answer(other, 0);
  BOOST_TEST((ready() == steps{7}));
}

// A lost assembler may have the last word, and it may be anything.
BOOST_AUTO_TEST_CASE(answers_to_an_order_that_was_replaced_are_ignored) {
  give(7);
  world.tell(*subject, order(7, other.actor()));
  answer(assembler, 0);
  BOOST_TEST(ready().empty());
  answer(assembler, 0, "it is not here any more");
  BOOST_TEST(supervisor.got<run_failed>().empty());
  answer(other, 0);
  BOOST_TEST((ready() == steps{7}));
}

BOOST_AUTO_TEST_CASE(the_first_bin_begins_whatever_is_held) {
  begin(1000);
  counters->memory->add(2000);
  give(7);
  BOOST_TEST(asked() == 1U);
}

BOOST_AUTO_TEST_CASE(further_bins_wait_until_there_is_memory_for_them) {
  begin(1000 + 2 * bytes_of_one());
  counters->memory->add(2000);
  give(7);
  give(8);
  world.tell(*subject, look_for_room{});
  BOOST_TEST(asked() == 1U);
  counters->memory->remove(1500);
  world.tell(*subject, look_for_room{});
  BOOST_TEST(asked() == 2U);
}

// Nothing is held before the first answer: all bins at once would fetch more than the limit.
BOOST_AUTO_TEST_CASE(what_is_being_fetched_counts_as_held) {
  begin(2 * bytes_of_one() + bytes_of_one() / 2);
  give(7);
  give(8);
  give(9);
  BOOST_TEST(asked() == 2U);
  answer(assembler, 0);
  take(7);
  BOOST_TEST(asked() == 3U);
}

BOOST_AUTO_TEST_CASE(an_order_that_was_replaced_counts_as_held_no_more) {
  begin(2 * bytes_of_one() + bytes_of_one() / 2);
  give(7);
  give(7);
  give(7);
  give(8);
  BOOST_TEST(asked() == 4U);
}

BOOST_AUTO_TEST_CASE(bins_begin_in_the_order_of_their_steps) {
  begin(1000);
  counters->memory->add(2000);
  give(9);
  give(8);
  give(7);
  BOOST_TEST(asked() == 1U);
  answer(assembler, 0); // step 9 is gathered; step 7 must not wait for what only step 9 can free
  BOOST_REQUIRE_EQUAL(asked(), 2);
  answer(assembler, 1);
  BOOST_TEST((ready() == steps{9, 7}));
  BOOST_TEST(asked() == 2U); // step 8 waits for step 7 to be taken
  take(7);
  BOOST_REQUIRE_EQUAL(asked(), 3);
  answer(assembler, 2);
  BOOST_TEST((ready() == steps{9, 7, 8}));
}

BOOST_AUTO_TEST_CASE(a_packer_without_work_leaves_at_once_when_it_is_drained) {
  world.tell(*subject, drain{});
  BOOST_REQUIRE_EQUAL(supervisor.got<drained>().size(), 1);
  BOOST_TEST(supervisor.got<drained>()[0].who == "packer-0");
}

BOOST_AUTO_TEST_CASE(a_drained_packer_leaves_when_all_that_it_has_is_taken) {
  give(7);
  world.tell(*subject, drain{});
  BOOST_TEST(supervisor.got<drained>().empty());
  answer(assembler, 0);
  BOOST_TEST(supervisor.got<drained>().empty());
  take(7);
  BOOST_TEST(supervisor.got<drained>().size() == 1U);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
} // namespace millrace::test
