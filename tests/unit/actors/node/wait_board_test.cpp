// SPDX-License-Identifier: Apache-2.0
#include "actors/node/wait_board.hpp"

#include <thread>

#include <boost/test/unit_test.hpp>

namespace millrace::test {
namespace {

using namespace std::chrono_literals;

const wait_board::clock::time_point start{1000s};

BOOST_AUTO_TEST_SUITE(wait_board_suite)

BOOST_AUTO_TEST_CASE(a_wait_is_shown_with_its_age) {
  wait_board board;
  board.set("trainer-3", "step 12", "step 12", "planner", start);
  BOOST_TEST((board.snapshot(start + 412s) ==
              std::vector<wait_entry>{{"trainer-3", "step 12", "planner", 412'000}}));
}

BOOST_AUTO_TEST_CASE(the_same_topic_goes_on_waiting_and_changes_what_is_shown) {
  wait_board board;
  board.set("planner", "step 12", "has 126/128 traces", "scorer", start);
  board.set("planner", "step 12", "has 127/128 traces", "assembler", start + 2s);
  BOOST_TEST((board.snapshot(start + 10s) ==
              std::vector<wait_entry>{{"planner", "has 127/128 traces", "assembler", 10'000}}));
}

BOOST_AUTO_TEST_CASE(another_topic_is_another_wait) {
  wait_board board;
  board.set("trainer-3", "step 12", "step 12", "planner", start);
  board.set("trainer-3", "step 13", "step 13", "planner", start + 4s);
  BOOST_TEST((board.snapshot(start + 10s) ==
              std::vector<wait_entry>{{"trainer-3", "step 13", "planner", 6'000}}));
}

BOOST_AUTO_TEST_CASE(a_cleared_wait_is_not_shown_and_begins_anew) {
  wait_board board;
  board.set("trainer-3", "step 12", "step 12", "planner", start);
  board.clear("trainer-3");
  BOOST_TEST(board.snapshot(start).empty());
  board.set("trainer-3", "step 12", "step 12", "planner", start + 4s);
  BOOST_TEST(board.snapshot(start + 5s).at(0).ms == 1'000U);
}

BOOST_AUTO_TEST_CASE(clearing_one_actor_leaves_the_others) {
  wait_board board;
  board.set("a", "x", "x", "", start);
  board.set("b", "y", "y", "", start);
  board.clear("a");
  board.clear("nobody");
  BOOST_TEST((board.snapshot(start) == std::vector<wait_entry>{{"b", "y", "", 0}}));
}

BOOST_AUTO_TEST_CASE(actors_on_many_threads_share_a_board) {
  wait_board board;
  const auto pump = [&](const std::string &who) {
    for (int i = 0; i < 1'000; ++i) {
      board.set(who, std::to_string(i), "step", "planner");
      static_cast<void>(board.snapshot());
      if (i % 3 == 0)
        board.clear(who);
    }
    board.set(who, "last", "the end", "planner");
  };
  {
    std::thread a(pump, "a");
    std::thread b(pump, "b");
    a.join();
    b.join();
  }
  const auto all = board.snapshot();
  BOOST_TEST(all.size() == 2U);
  for (const auto &each : all)
    BOOST_TEST(each.what == "the end");
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
} // namespace millrace::test
