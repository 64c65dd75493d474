// SPDX-License-Identifier: Apache-2.0
#include "actors/scorer/scorer.hpp"

#include <boost/test/unit_test.hpp>

#include "tests/support/actors.hpp"
#include "tests/support/groups.hpp"

namespace millrace::test {
namespace {

/// A scorer of two environments: "plain" needs nothing but the header, "duel" keeps a state.
struct scorer_fixture {
  actor_world world;
  probe<group_scored, group_tombstone, score_wanted> planner{world};
  probe<group_complete> assembler{world};
  probe<drained> supervisor{world};
  std::shared_ptr<run_counters> counters = std::make_shared<run_counters>();
  owned_actor subject{
      world.system().spawn<scorer>(world.context(), "scorer-0", settings(),
                                   scorer_peers{planner.actor(), supervisor.actor()}, counters)};

  static std::shared_ptr<const run_config> settings() {
    auto out = std::make_shared<run_config>();
    out->envs["plain"].algorithm = "grpo";
    out->envs["duel"].algorithm = "rae";
    out->envs["duel"].decay = 0.5;
    return out;
  }
  static frame header(std::string_view env, std::uint64_t ordinal = 0) {
    auto a = episode_of("a", 1, {prompt(-1, 3), turn(0, {1, 1})});
    auto b = episode_of("b", 0, {prompt(-1, 3), turn(0, {1, 1})});
    a.key.env = b.key.env = env;
    auto members = group_of({a, b});
    members.key.env = env;
    members.ordinal = ordinal;
    return header_of(members).bytes();
  }
  void complete(std::string_view env, std::uint64_t ordinal = 0) {
    world.tell(subject, group_complete{{ordinal, 0},
                                       header(env, ordinal),
                                       named("assembler-0", assembler.actor())});
  }
  void turn_of(std::uint64_t ordinal, std::uint64_t number, std::vector<std::uint8_t> state = {}) {
    world.tell(subject, score_turn{{ordinal, 0}, false, number, std::move(state)});
  }
  const group_scored &answer() {
    BOOST_REQUIRE_EQUAL(planner.got<group_scored>().size(), 1);
    return planner.got<group_scored>()[0];
  }
};

BOOST_FIXTURE_TEST_SUITE(scorer_suite, scorer_fixture)

BOOST_AUTO_TEST_CASE(a_group_that_needs_only_its_header_is_answered_at_once_and_not_logged) {
  complete("plain");
  BOOST_TEST(!answer().once.has_value());
  BOOST_TEST(planner.got<score_wanted>().empty());
}

BOOST_AUTO_TEST_CASE(a_group_with_a_state_waits_for_its_turn_and_says_what_it_rests_on) {
  complete("duel");
  BOOST_TEST(planner.got<group_scored>().empty());
  BOOST_REQUIRE_EQUAL(planner.got<score_wanted>().size(), 1);
  BOOST_TEST(planner.got<score_wanted>()[0].key != "");
  turn_of(0, 1);
  BOOST_REQUIRE(answer().once.has_value());
  BOOST_TEST(answer().once->key == planner.got<score_wanted>()[0].key);
  BOOST_TEST(answer().once->number == 1U);
  BOOST_TEST(answer().once->before.empty());
  BOOST_TEST(!answer().once->after.empty());
}

BOOST_AUTO_TEST_CASE(an_answer_depends_on_the_state_that_it_is_handed_and_on_no_memory) {
  complete("duel", 0);
  turn_of(0, 1);
  const auto first = answer();
  planner.got<group_scored>().clear();
  complete("duel", 1);
  turn_of(1, 2, first.once->after);
  const auto second = answer();
  planner.got<group_scored>().clear();
  BOOST_TEST(second.once->before == first.once->after, boost::test_tools::per_element());
  complete("duel", 0); // once more, for a planner that knows of no answer
  turn_of(0, 1);
  BOOST_TEST(std::ranges::equal(answer().annotations.bytes(), first.annotations.bytes()));
  BOOST_TEST(answer().once->after == first.once->after, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_state_that_cannot_be_read_ends_its_group_by_name) {
  complete("duel");
  turn_of(0, 2, {1, 2, 3});
  BOOST_REQUIRE_EQUAL(planner.got<group_tombstone>().size(), 1);
  BOOST_TEST(planner.got<group_tombstone>()[0].why.find("duel") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_group_that_has_an_answer_is_forgotten) {
  complete("duel");
  world.tell(subject, score_turn{.group = {0, 0}, .scored = true, .state = {}});
  world.tell(subject, drain{});
  BOOST_TEST(supervisor.got<drained>().size() == 1U);
  BOOST_TEST(planner.got<group_scored>().empty());
}

BOOST_AUTO_TEST_CASE(a_planner_that_starts_again_is_asked_again) {
  complete("duel");
  const planner_claim one{digest128{}, 3};
  world.tell(subject, planner_hello{{one.folder, 3}, 0});
  world.tell(subject, planner_hello{{one.folder, 3}, 0}); // the same once more
  world.tell(subject, planner_hello{{one.folder, 2}, 0}); // late
  BOOST_TEST(planner.got<score_wanted>().size() == 2U);
}

BOOST_AUTO_TEST_CASE(answers_go_to_the_planner_that_the_assembler_obeys) {
  probe<group_scored, score_wanted> later{world};
  const auto who = named("planner", later.actor());
  for (const auto *env : {"plain", "duel"})
    world.tell(subject, group_complete{{0, 0}, header(env), assembler.actor(), who});
  BOOST_TEST(later.got<group_scored>().size() == 1U);
  BOOST_TEST(later.got<score_wanted>().size() == 1U);
  BOOST_TEST(planner.got<group_scored>().empty());
}

BOOST_AUTO_TEST_CASE(a_turn_is_asked_of_the_planner_that_spoke_last_and_answered_to_it) {
  probe<group_scored, score_wanted> later{world};
  complete("duel");
  world.tell(subject, planner_hello{{{}, 2}, 0, named("planner", later.actor())});
  BOOST_TEST(later.got<score_wanted>().size() == 1U);
  turn_of(0, 1);
  BOOST_TEST(later.got<group_scored>().size() == 1U);
}

BOOST_AUTO_TEST_CASE(a_drained_scorer_leaves_when_it_has_answered_what_it_has) {
  complete("duel");
  world.tell(subject, drain{});
  BOOST_TEST(supervisor.got<drained>().empty());
  turn_of(0, 1);
  BOOST_TEST(supervisor.got<drained>().size() == 1U);
}

BOOST_AUTO_TEST_CASE(groups_of_a_lost_assembler_are_nobody_s) {
  complete("duel");
  world.tell(subject, peer_down{role::assembler, named("assembler-0", assembler.actor()), "lost"});
  turn_of(0, 1);
  BOOST_TEST(planner.got<group_scored>().empty());
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
} // namespace millrace::test
