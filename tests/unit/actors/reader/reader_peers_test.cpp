// SPDX-License-Identifier: Apache-2.0
// A reader whose assemblers are other processes: with more or less room, coming and going.
#include "tests/support/fake_remote.hpp"
#include "tests/unit/actors/reader/reader_fixture.hpp"

namespace millrace::test {
namespace {

struct remote_fixture : reader_fixture {
  remote_stand_in a{"assembler-0"};
  remote_stand_in b{"assembler-1"};

  remote_fixture() { assemblers = {a.who, b.who}; }

  void up(const remote_stand_in &one) { tell_all(peer_up{role::assembler, one.who}); }
  void drain_one(const remote_stand_in &one) { tell_all(peer_draining{role::assembler, one.who}); }
  void down(const remote_stand_in &one) { tell_all(peer_down{role::assembler, one.who, "a test"}); }
  void settle(std::vector<group_ref> groups) { tell_all(groups_settled{std::move(groups)}); }

  /// Ids of the episodes that came, in order.
  static std::vector<std::string> ids(const remote_stand_in &one) {
    std::vector<std::string> out;
    for (const auto &each : one.got<episode_arrived>())
      out.emplace_back(each.episode.id());
    return out;
  }
  static bool ends_with_the_end(const remote_stand_in &one) {
    const auto &parcels = one.behind->parcels;
    return !parcels.empty() && std::holds_alternative<source_ended>(parcels.back().what);
  }
};

using names = std::vector<std::string>;

BOOST_FIXTURE_TEST_SUITE(reader_and_assemblers, remote_fixture)

BOOST_AUTO_TEST_CASE(a_group_goes_to_the_assembler_with_the_most_room) {
  a.behind->room_left = 10;
  b.behind->room_left = 20;
  write("e0", "g0");
  write("e1", "g1");
  read(1);
  BOOST_TEST((ids(b) == names{"e0"}));
  a.behind->room_left = 30;
  allow(2);
  BOOST_TEST((ids(a) == names{"e1"}));
}

BOOST_AUTO_TEST_CASE(a_group_stays_with_its_assembler_whatever_room_others_have) {
  a.behind->room_left = 20;
  b.behind->room_left = 10;
  write("e0", "g0");
  write("e1", "g1");
  write("e2", "g0");
  read(1);
  b.behind->room_left = 30;
  allow(2);
  BOOST_TEST((ids(a) == names{"e0", "e2"}));
  BOOST_TEST((ids(b) == names{"e1"}));
}

BOOST_AUTO_TEST_CASE(without_credit_nothing_is_sent_until_room_comes) {
  a.behind->takes = b.behind->takes = false;
  write("e0", "g0");
  read();
  BOOST_TEST(a.behind->parcels.size() + b.behind->parcels.size() == 0U);
  tell_all(room_came{}); // of somebody else
  BOOST_TEST(a.behind->parcels.size() + b.behind->parcels.size() == 0U);
  a.behind->takes = b.behind->takes = true;
  tell_all(room_came{});
  BOOST_TEST(ids(a).size() + ids(b).size() == 1U);
}

BOOST_AUTO_TEST_CASE(a_group_begun_waits_for_its_own_assembler_and_no_other) {
  b.behind->room_left = 0;
  write("e0", "g0");
  write("e1", "g1");
  write("e2", "g0");
  read(1);
  a.behind->takes = false;
  b.behind->room_left = 1 << 21;
  allow(2); // e1 goes to the other one, e2 waits
  BOOST_TEST((ids(a) == names{"e0"}));
  BOOST_TEST((ids(b) == names{"e1"}));
  BOOST_TEST(planner.got<source_ended>().empty());
  a.behind->takes = true;
  tell_all(room_came{});
  BOOST_TEST((ids(a) == names{"e0", "e2"}));
}

BOOST_AUTO_TEST_CASE(more_held_than_the_limit_stops_the_reader_until_there_is_less) {
  options.memory_limit = 1000;
  counters->memory->add(2000);
  assemblers = {a.who};
  write("e0", "g0");
  read();
  tell_all(look_for_room{});
  BOOST_TEST(a.behind->parcels.empty());
  counters->memory->remove(1500);
  tell_all(look_for_room{});
  BOOST_TEST((ids(a) == names{"e0"}));
}

BOOST_AUTO_TEST_CASE(hunger_lifts_the_limit_of_memory_as_long_as_it_lasts) {
  options.memory_limit = 1000;
  counters->memory->add(2000);
  assemblers = {a.who};
  write("e0", "g0");
  write("e1", "g1");
  read(1);
  tell_all(hunger{true});
  BOOST_TEST((ids(a) == names{"e0"}));
  tell_all(hunger{false});
  allow(2);
  BOOST_TEST(ids(a).size() + ids(b).size() == 1U);
}

// Credit is the receiver's word: hunger reaches it by another way.
BOOST_AUTO_TEST_CASE(hunger_does_not_replace_credit) {
  a.behind->takes = b.behind->takes = false;
  write("e0", "g0");
  read();
  tell_all(hunger{true});
  BOOST_TEST(a.behind->parcels.size() + b.behind->parcels.size() == 0U);
}

BOOST_AUTO_TEST_CASE(all_that_was_sent_of_a_group_goes_to_another_when_its_assembler_is_lost) {
  const auto frames = some_episode_in_two("e0");
  write_frame(frames[0]);
  write_frame(frames[1]);
  BOOST_REQUIRE(file->append_group_size(some_key("math", "g1"), 5));
  auto bad = unsized("bad", some_key("math", "g0"));
  bad.nodes[1].token_ids[2] = 1000; // the vocabulary's size
  write(bad);
  write("e1", "g1");
  read(1);
  BOOST_REQUIRE_EQUAL(a.behind->parcels.size(), 3);
  down(a);
  const auto &moved = b.behind->parcels;
  BOOST_REQUIRE_EQUAL(moved.size(), 4);
  BOOST_TEST(!std::get<group_again>(moved[0].what).scored); // it may have the group already
  BOOST_TEST(std::get<frame_arrived>(moved[1].what).part.table().frame() == 0U);
  BOOST_TEST(std::get<frame_arrived>(moved[2].what).part.table().frame() == 1U);
  BOOST_TEST(std::get<episode_rejected>(moved[3].what).id == "bad");
}

BOOST_AUTO_TEST_CASE(what_follows_of_a_moved_group_goes_where_it_is) {
  write("e0", "g0");
  write("e1", "g1");
  write("e2", "g0");
  read(1);
  down(a);
  b.behind->parcels.clear();
  allow(2);
  BOOST_TEST((ids(b) == names{"e1", "e2"}));
  BOOST_TEST((ids(a) == names{"e0"}));
}

BOOST_AUTO_TEST_CASE(only_groups_of_the_lost_assembler_move) {
  write("e0", "g0");
  write("e1", "g1");
  read();
  BOOST_TEST((ids(b) == names{"e1"}));
  down(a);
  BOOST_TEST((ids(b) == names{"e1", "e0"}));
}

BOOST_AUTO_TEST_CASE(a_group_can_move_more_than_once) {
  remote_stand_in c("assembler-2");
  write("e0", "g0");
  read();
  down(a);
  up(c);
  down(b);
  BOOST_TEST((ids(c) == names{"e0"}));
}

BOOST_AUTO_TEST_CASE(a_settled_group_is_forgotten) {
  write("e0", "g0");
  write("e1", "g1");
  write("e2", "g2");
  read();
  settle({{0, 0}});
  down(a);
  BOOST_TEST((ids(b) == names{"e1", "e2"}));
}

// Who has closed its incomplete groups already must look at what came since.
BOOST_AUTO_TEST_CASE(who_takes_groups_over_after_the_end_hears_of_the_end_again) {
  remote_stand_in c("assembler-2");
  c.behind->room_left = 0;
  assemblers.push_back(c.who);
  write("e0", "g0");
  read();
  BOOST_TEST(b.got<source_ended>().size() == 1U);
  down(a);
  BOOST_TEST((ids(b) == names{"e0"}));
  BOOST_TEST(b.got<source_ended>().size() == 2U);
  BOOST_TEST(ends_with_the_end(b));
  BOOST_TEST(c.got<source_ended>().size() == 1U);
  BOOST_TEST(planner.got<source_ended>().size() == 1U);
}

BOOST_AUTO_TEST_CASE(without_assemblers_a_reader_waits_for_one) {
  assemblers = {};
  write("e0", "g0");
  read();
  BOOST_TEST(planner.got<source_ended>().empty());
  up(a);
  BOOST_TEST((ids(a) == names{"e0"}));
  BOOST_TEST(planner.got<source_ended>().size() == 1U);
}

BOOST_AUTO_TEST_CASE(groups_of_the_only_assembler_wait_for_the_next_one) {
  assemblers = {a.who};
  write("e0", "g0");
  write("e1", "g0");
  write("e2", "g1");
  read(1);
  down(a);
  allow(2);
  BOOST_TEST((ids(a) == names{"e0", "e1"}));
  up(b);
  BOOST_TEST((ids(b) == names{"e0", "e1", "e2"}));
}

BOOST_AUTO_TEST_CASE(after_the_end_the_next_assembler_hears_of_the_end_after_what_it_takes_over) {
  assemblers = {a.who};
  write("e0", "g0");
  read();
  down(a);
  up(b);
  BOOST_TEST((ids(b) == names{"e0"}));
  BOOST_TEST(ends_with_the_end(b));
}

BOOST_AUTO_TEST_CASE(a_group_of_which_only_the_size_is_known_waits_for_an_assembler_too) {
  assemblers = {};
  BOOST_REQUIRE(file->append_group_size(some_key("math", "empty"), 5));
  read();
  up(a);
  BOOST_TEST(a.got<group_sized>().size() == 1U);
  BOOST_TEST(ends_with_the_end(a));
}

BOOST_AUTO_TEST_CASE(a_draining_assembler_gets_no_new_groups_and_its_own_go_on) {
  write("e0", "g0");
  write("e1", "g1");
  write("e2", "g2");
  write("e3", "g0");
  read(1);
  drain_one(a);
  allow(3);
  BOOST_TEST((ids(a) == names{"e0", "e3"}));
  BOOST_TEST((ids(b) == names{"e1", "e2"}));
}

BOOST_AUTO_TEST_CASE(if_all_assemblers_drain_new_groups_wait_for_another) {
  assemblers = {a.who};
  write("e0", "g0");
  write("e1", "g1");
  read(1);
  drain_one(a);
  allow(2);
  BOOST_TEST((ids(a) == names{"e0"}));
  up(b);
  BOOST_TEST((ids(b) == names{"e1"}));
}

BOOST_AUTO_TEST_CASE(other_readers_groups_stay_theirs_when_an_assembler_is_lost) {
  options.count = 2;
  assemblers = {a.who};
  write("e0", "g0");
  write("e1", "g1");
  read();
  down(a);
  up(b);
  BOOST_TEST((ids(b) == names{"e0", "e1"}));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
} // namespace millrace::test
