// SPDX-License-Identifier: Apache-2.0
// An assembler whose scorers come and go, and that is told to drain.
#include "tests/unit/actors/assembler/assembler_fixture.hpp"

namespace millrace::test {
namespace {

using ordinals = std::vector<std::uint64_t>;

struct scorers_fixture : assembler_fixture {
  using scorer_probe = probe<group_complete>;
  scorer_probe second{world};

  peer first_scorer() { return named("scorer-0", scorer.actor()); }
  peer second_scorer() { return named("scorer-1", second.actor()); }

  void up(const peer &who) { world.tell(subject, peer_up{role::scorer, who}); }
  void down(const peer &who) { world.tell(subject, peer_down{role::scorer, who, "a test"}); }
  void draining(const peer &who) { world.tell(subject, peer_draining{role::scorer, who}); }
  void received(std::uint64_t ordinal) { world.tell(subject, groups_received{{{ordinal, 0}}}); }
  void settled(std::uint64_t ordinal) { world.tell(subject, groups_settled{{{ordinal, 0}}}); }

  /// The groups that a scorer was asked for, in order.
  static ordinals asked(scorer_probe &who) {
    ordinals out;
    for (const auto &one : who.got<group_complete>())
      out.push_back(one.group.ordinal);
    return out;
  }
};

BOOST_FIXTURE_TEST_SUITE(assembler_and_scorers, scorers_fixture)

BOOST_AUTO_TEST_CASE(a_group_goes_to_the_scorer_with_the_fewest_that_the_planner_has_not) {
  up(second_scorer());
  group(0);
  group(1);
  group(2);
  BOOST_TEST((asked(scorer) == ordinals{0, 2}));
  BOOST_TEST((asked(second) == ordinals{1}));
  received(0);
  received(2);
  group(3); // the first has none left
  group(4);
  BOOST_TEST((asked(scorer) == ordinals{0, 2, 3, 4}));
  BOOST_TEST((asked(second) == ordinals{1}));
}

BOOST_AUTO_TEST_CASE(a_scorer_that_does_not_answer_gets_no_more_than_its_share) {
  up(second_scorer());
  for (std::uint64_t i = 0; i < 10; ++i) {
    group(i);
    if (!asked(second).empty() && asked(second).back() == i)
      received(i);
  }
  BOOST_TEST(asked(scorer).size() == 1U);
  BOOST_TEST(asked(second).size() == 9U);
}

// To a scorer the planner's name may still stand for one that is dead: its answer would be lost.
BOOST_AUTO_TEST_CASE(a_scorer_hears_which_planner_gets_its_answer) {
  const auto later = named("planner", planner.actor());
  world.tell(subject, planner_hello{{{}, 2}, 0, later});
  group(0);
  BOOST_TEST((scorer.got<group_complete>().at(0).planner == later));
}

BOOST_AUTO_TEST_CASE(what_was_offered_before_the_planner_spoke_is_offered_again) {
  group(0);
  world.tell(subject, planner_hello{{{}, 2}, 0, named("planner", planner.actor())});
  BOOST_TEST((asked(scorer) == ordinals{0, 0}));
  world.tell(subject, planner_hello{{{}, 2}, 0, named("planner", planner.actor())});
  BOOST_TEST((asked(scorer) == ordinals{0, 0}));
}

BOOST_AUTO_TEST_CASE(a_settled_group_counts_for_its_scorer_no_more) {
  up(second_scorer());
  group(0);
  settled(0);
  group(1);
  BOOST_TEST((asked(scorer) == ordinals{0, 1}));
}

BOOST_AUTO_TEST_CASE(groups_of_a_lost_scorer_are_scored_by_another) {
  up(second_scorer());
  group(0);
  group(1);
  down(first_scorer());
  BOOST_REQUIRE((asked(second) == ordinals{1, 0}));
  BOOST_TEST((second.got<group_complete>()[1].assembler ==
              peer({"assembler-0", 0}, static_cast<const caf::actor &>(subject))));
}

BOOST_AUTO_TEST_CASE(groups_that_the_planner_has_are_not_scored_again) {
  up(second_scorer());
  group(0);
  received(0);
  down(first_scorer());
  BOOST_TEST(asked(second).empty());
}

BOOST_AUTO_TEST_CASE(a_lost_scorer_is_asked_no_more) {
  up(second_scorer());
  down(first_scorer());
  group(0);
  group(1);
  BOOST_TEST(asked(scorer).empty());
  BOOST_TEST((asked(second) == ordinals{0, 1}));
}

BOOST_AUTO_TEST_CASE(without_a_scorer_groups_wait_and_the_next_one_is_asked) {
  down(first_scorer());
  group(0);
  group(1);
  up(second_scorer());
  BOOST_TEST((asked(second) == ordinals{0, 1}));
}

BOOST_AUTO_TEST_CASE(groups_of_the_only_scorer_wait_for_the_next_one) {
  group(0);
  down(first_scorer());
  up(second_scorer());
  BOOST_TEST((asked(second) == ordinals{0}));
}

// The last words of a scorer may come after the news of its loss.
BOOST_AUTO_TEST_CASE(scores_that_come_while_no_scorer_is_there_are_not_asked_for_again) {
  group(0);
  down(first_scorer());
  received(0);
  up(second_scorer());
  BOOST_TEST(asked(second).empty());
}

BOOST_AUTO_TEST_CASE(a_draining_scorer_gets_nothing_new_and_keeps_what_it_has) {
  up(second_scorer());
  group(0);
  draining(first_scorer());
  group(1);
  group(2);
  BOOST_TEST((asked(scorer) == ordinals{0}));
  BOOST_TEST((asked(second) == ordinals{1, 2}));
}

BOOST_AUTO_TEST_CASE(if_all_scorers_drain_groups_wait_for_another) {
  draining(first_scorer());
  group(0);
  BOOST_TEST(asked(scorer).empty());
  up(second_scorer());
  BOOST_TEST((asked(second) == ordinals{0}));
}

BOOST_AUTO_TEST_CASE(a_group_that_ended_without_scores_is_asked_of_nobody) {
  episode(0, "a");
  end(0);
  end(1);
  BOOST_TEST(planner.got<group_tombstone>().size() == 1U);
  down(first_scorer());
  up(second_scorer());
  BOOST_TEST(asked(second).empty());
}

// What another assembler had is sent once more after the end, and the end again.
BOOST_AUTO_TEST_CASE(an_end_that_comes_again_closes_what_came_since) {
  end(0);
  end(1);
  episode(0, "a");
  BOOST_TEST(planner.got<group_tombstone>().empty());
  end(0);
  BOOST_TEST(planner.got<group_tombstone>().size() == 1U);
}

// The planner's word to this assembler may come after what it made the reader do.
BOOST_AUTO_TEST_CASE(a_group_that_was_wanted_since_it_was_settled_is_not_let_go) {
  const auto send_again = [&](planner_moment when) {
    world.tell(subject, group_again{{0, 0}, pair, true, when});
    group(0);
  };
  const auto settle_at = [&](planner_moment when) {
    world.tell(subject, groups_settled{{{0, 0}}, false, when});
  };
  send_again({1, 2});
  BOOST_TEST(planner.got<group_held>().size() == 1U);
  settle_at({1, 1});
  BOOST_TEST(fetched({0, 1}).problem == "");
  settle_at({1, 2});
  BOOST_TEST(fetched({0, 1}).problem != "");
}

// An earlier start of its reader had sent it here, this one elsewhere, and there it was lost.
BOOST_AUTO_TEST_CASE(a_group_that_is_moved_here_and_is_here_already_is_offered_again) {
  group(0);
  BOOST_TEST((asked(scorer) == ordinals{0}));
  world.tell(subject, group_again{{0, 0}, pair});
  group(0);
  BOOST_TEST((asked(scorer) == ordinals{0, 0}));
  BOOST_TEST(counters->late == 0U);
  BOOST_TEST(counters->repeats == 2U);
}

// Else the one that was asked first would look busier with every group that is offered again.
BOOST_AUTO_TEST_CASE(a_group_that_is_offered_again_counts_once_for_its_scorer) {
  group(0);
  up(second_scorer());
  world.tell(subject, group_again{{0, 0}, pair});
  BOOST_TEST((asked(scorer) == ordinals{0, 0}));
  BOOST_TEST(asked(second).empty());
}

// It was moved while it was sent: the first episode came here, and all of it to another assembler.
BOOST_AUTO_TEST_CASE(a_part_of_a_group_whose_rest_went_elsewhere_is_not_said_to_be_held) {
  world.tell(subject, group_again{{0, 0}, pair, true, {1, 1}});
  episode(0, "a");
  end(0);
  world.tell(subject, groups_wanted{{{0, 0}}, true, {1, 2}});
  BOOST_TEST(planner.got<group_held>().empty());
  BOOST_TEST(planner.got<group_tombstone>().empty());
  BOOST_TEST(counters->groups_open == 0U);
}

BOOST_AUTO_TEST_CASE(a_drained_assembler_leaves_when_its_groups_are_settled_and_not_before) {
  group(0);
  episode(0, "a", 0, 1);
  world.tell(subject, drain{});
  BOOST_TEST(supervisor.got<drained>().empty());
  settled(0);
  BOOST_TEST(supervisor.got<drained>().empty());
  episode(1, "b", 0, 1); // a group that has begun goes on
  BOOST_TEST((asked(scorer) == ordinals{0, 1}));
  settled(1);
  BOOST_REQUIRE_EQUAL(supervisor.got<drained>().size(), 1);
  BOOST_TEST(supervisor.got<drained>()[0].who == "assembler-0");
}

BOOST_AUTO_TEST_CASE(an_assembler_without_groups_leaves_at_once) {
  world.tell(subject, drain{});
  BOOST_TEST(supervisor.got<drained>().size() == 1U);
}

BOOST_AUTO_TEST_CASE(an_assembler_that_is_not_told_to_leave_stays_when_it_has_nothing) {
  group(0);
  settled(0);
  BOOST_TEST(supervisor.got<drained>().empty());
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
} // namespace millrace::test
