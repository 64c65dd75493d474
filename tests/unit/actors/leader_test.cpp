// SPDX-License-Identifier: Apache-2.0
#include "actors/leader.hpp"

#include <boost/test/unit_test.hpp>

#include "tests/support/actors.hpp"

namespace millrace::test {
namespace {

struct leader_fixture {
  actor_world world;
  probe<hunger> one{world};
  probe<hunger> two{world};
  peer named_planner = named("planner", one.actor());
  peer second_start = named("planner", two.actor());
  leader whom{named_planner};

  static planner_hello hello(std::uint8_t folder, std::uint64_t epoch, peer from = {}) {
    planner_claim claim{{}, epoch};
    claim.folder.bytes[0] = folder;
    return {claim, 0, std::move(from)};
  }
};

BOOST_FIXTURE_TEST_SUITE(leaders, leader_fixture)

BOOST_AUTO_TEST_CASE(before_a_hello_the_name_counts_and_after_it_the_start_that_spoke) {
  BOOST_TEST((whom.who() == named_planner));
  BOOST_TEST(whom.follow(hello(1, 3, second_start)));
  BOOST_TEST((whom.who() == second_start));
  BOOST_TEST(whom.claim().epoch == 3U);
}

BOOST_AUTO_TEST_CASE(a_late_hello_changes_nothing) {
  BOOST_TEST(whom.follow(hello(1, 3, second_start)));
  BOOST_TEST(!whom.follow(hello(1, 3, named_planner)));
  BOOST_TEST(!whom.follow(hello(1, 2, named_planner)));
  BOOST_TEST((whom.who() == second_start));
}

// It is refused elsewhere, and ends; the planner that leads does not say hello again.
BOOST_AUTO_TEST_CASE(after_another_folders_hello_the_name_counts) {
  BOOST_TEST(whom.follow(hello(1, 3, second_start)));
  BOOST_TEST(whom.follow(hello(2, 1, named("planner", two.actor()))));
  BOOST_TEST((whom.who() == named_planner));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
} // namespace millrace::test
