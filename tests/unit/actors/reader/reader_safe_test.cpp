// SPDX-License-Identifier: Apache-2.0
// A reader whose assemblers keep journals.
#include "tests/support/fake_remote.hpp"
#include "tests/unit/actors/reader/reader_fixture.hpp"

namespace millrace::test {
namespace {

using names = std::vector<std::string>;

struct safe_fixture : reader_fixture {
  remote_stand_in a{"assembler-0"};
  remote_stand_in a_again{"assembler-0", 2};
  remote_stand_in b{"assembler-1"};

  /// Groups 0 and 1 of two episodes each, at the first assembler.
  safe_fixture() {
    assemblers = {a.who, b.who};
    b.behind->room_left = 1;
    write("e0", "g0");
    write("e1", "g1");
    write("e2", "g0");
    write("e3", "g1");
  }
  void up(const remote_stand_in &one) { tell_all(peer_up{role::assembler, one.who}); }
  void down(const remote_stand_in &one) { tell_all(peer_down{role::assembler, one.who, "a test"}); }
  void safe(std::uint64_t ordinal, std::uint32_t member, const remote_stand_in &by) {
    tell_all(messages_safe{{{{ordinal, 0}, member, 0}}, by.who});
  }
  void settle(std::uint64_t ordinal, bool for_good) {
    tell_all(groups_settled{{{ordinal, 0}}, for_good});
  }
  std::uint64_t pinned() { return counters->pinned->count("assembler-0"); }

  static names ids(const remote_stand_in &one) {
    names out;
    for (const auto &each : one.got<episode_arrived>())
      out.emplace_back(each.episode.id());
    return out;
  }
};

BOOST_FIXTURE_TEST_SUITE(reader_and_journals, safe_fixture)

BOOST_AUTO_TEST_CASE(what_is_safe_waits_for_its_assembler_and_is_not_sent_again) {
  read();
  BOOST_REQUIRE((ids(a) == names{"e0", "e1", "e2", "e3"}));
  safe(0, 0, a);
  safe(0, 1, a);
  safe(1, 1, a);
  down(a);
  BOOST_TEST(ids(b).empty());
  up(a_again);
  BOOST_TEST((ids(a_again) == names{"e1"}));
  BOOST_TEST(ids(b).empty());
}

BOOST_AUTO_TEST_CASE(an_assembler_that_is_back_hears_which_groups_go_on_there) {
  read();
  safe(0, 0, a);
  safe(0, 1, a);
  down(a);
  up(a_again);
  const auto claims = a_again.got<group_sized>();
  BOOST_REQUIRE(claims.size() == 1U);
  BOOST_TEST(claims[0].group.ordinal == 0U);
  BOOST_TEST(std::holds_alternative<group_sized>(a_again.behind->parcels.front().what));
  BOOST_TEST(std::holds_alternative<source_ended>(a_again.behind->parcels.back().what));
}

BOOST_AUTO_TEST_CASE(a_group_of_which_nothing_is_safe_goes_to_another) {
  read();
  safe(0, 0, a);
  down(a);
  BOOST_TEST((ids(b) == names{"e1", "e3"}));
}

BOOST_AUTO_TEST_CASE(what_comes_of_a_group_while_its_assembler_is_gone_waits_for_it) {
  read(1);
  safe(0, 0, a);
  down(a);
  allow(everything);
  BOOST_TEST((ids(b) == names{"e1"})); // and then it is stuck at the next episode of group 0
  up(a_again);
  BOOST_TEST((ids(a_again) == names{"e2"}));
  BOOST_TEST((ids(b) == names{"e1", "e3"}));
}

BOOST_AUTO_TEST_CASE(the_word_of_one_that_has_not_the_group_any_more_does_not_count) {
  read();
  down(a); // all goes to the other
  safe(0, 0, a);
  safe(0, 1, a);
  up(a_again);
  down(b);
  BOOST_TEST((ids(a_again) == names{"e0", "e2", "e1", "e3"}));
}

BOOST_AUTO_TEST_CASE(a_later_attempt_and_another_frame_are_not_what_is_safe) {
  read();
  tell_all(messages_safe{{{{0, 0}, 0, 1}, {{0, 0}, 1, 0, 0}}, a.who});
  down(a);
  BOOST_TEST((ids(b) == names{"e0", "e2", "e1", "e3"}));
}

BOOST_AUTO_TEST_CASE(a_group_in_a_step_that_is_wanted_again_is_asked_of_its_assembler_alone) {
  read();
  safe(0, 0, a);
  settle(0, false);
  safe(0, 1, a); // told late
  tell_all(groups_wanted{{{0, 0}}, true});
  BOOST_TEST(a.got<group_again>().size() == 1U);
  BOOST_TEST((ids(a) == names{"e0", "e1", "e2", "e3"})); // it has both
  BOOST_TEST(b.got<group_again>().empty());
}

BOOST_AUTO_TEST_CASE(what_is_not_safe_of_a_group_that_is_wanted_again_is_sent_there) {
  read();
  safe(0, 0, a);
  settle(0, false);
  down(a);
  tell_all(groups_wanted{{{0, 0}}, true});
  for (const auto &moved : b.got<group_again>())
    BOOST_TEST(moved.group.ordinal != 0U);
  up(a_again);
  BOOST_REQUIRE(a_again.got<group_again>().size() == 1U);
  BOOST_TEST((ids(a_again) == names{"e2"}));
}

BOOST_AUTO_TEST_CASE(groups_are_pinned_until_they_are_done_for_good) {
  read();
  BOOST_TEST(pinned() == 0U);
  safe(0, 0, a);
  safe(0, 1, a);
  safe(1, 0, a);
  BOOST_TEST(pinned() == 2U);
  settle(0, false);
  BOOST_TEST(pinned() == 2U);
  settle(0, true);
  BOOST_TEST(pinned() == 1U);
  settle(0, true);
  settle(1, true);
  BOOST_TEST(pinned() == 0U);
}

BOOST_AUTO_TEST_CASE(what_is_safe_is_counted_as_sent_all_the_same) {
  read(1);
  safe(0, 0, a);
  allow(everything);
  BOOST_TEST(counters->episodes == 4U);
  BOOST_REQUIRE(supervisor.got<source_report>().size() == 1U);
  BOOST_TEST(supervisor.got<source_report>()[0].counts->episodes == 4U);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
} // namespace millrace::test
