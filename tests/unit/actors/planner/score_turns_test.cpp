// SPDX-License-Identifier: Apache-2.0
#include "actors/planner/score_turns.hpp"

#include <random>
#include <set>

#include <boost/test/unit_test.hpp>

namespace millrace {

namespace {

score_turns::turn wish(std::uint64_t ordinal, std::string key = "env") {
  return {{ordinal, 0}, std::move(key), {}};
}

bool nothing_known(group_ref) { return false; }

/// The ordinals whose turn it is now.
std::vector<std::uint64_t> given(score_turns &turns,
                                 const std::function<bool(group_ref)> &is_known = nothing_known) {
  std::vector<std::uint64_t> out;
  while (const auto next = turns.next(is_known))
    out.push_back(next->group.ordinal);
  return out;
}

using ordinals = std::vector<std::uint64_t>;

} // namespace

BOOST_AUTO_TEST_SUITE(score_turns_test)

BOOST_AUTO_TEST_CASE(groups_of_one_key_take_turns_one_at_a_time) {
  score_turns turns(true);
  turns.want(wish(0));
  turns.want(wish(1));
  BOOST_TEST(given(turns) == ordinals{0}, boost::test_tools::per_element());
  turns.finish({0, 0});
  BOOST_TEST(given(turns) == ordinals{1}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_later_group_waits_until_all_before_it_are_known) {
  score_turns turns(true);
  turns.want(wish(2));
  std::set<std::uint64_t> known{1};
  const auto is_known = [&](group_ref ref) { return known.contains(ref.ordinal); };
  BOOST_TEST(given(turns, is_known).empty());
  known.insert(0);
  BOOST_TEST(given(turns, is_known) == ordinals{2}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_group_that_waits_itself_counts_as_known) {
  score_turns turns(true);
  turns.want(wish(1, "other"));
  turns.want(wish(0));
  BOOST_TEST(given(turns).size() == 2U);
}

BOOST_AUTO_TEST_CASE(out_of_order_the_first_to_ask_is_first) {
  score_turns turns(false);
  turns.want(wish(7));
  turns.want(wish(3));
  BOOST_TEST(given(turns) == ordinals{7}, boost::test_tools::per_element());
  turns.finish({7, 0});
  BOOST_TEST(given(turns) == ordinals{3}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(keys_do_not_wait_for_each_other) {
  score_turns turns(true);
  for (std::uint64_t i = 0; i < 4; ++i)
    turns.want(wish(i, i % 2 == 0 ? "a" : "b"));
  BOOST_TEST(given(turns) == (ordinals{0, 1}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_group_without_key_waits_for_nobody) {
  score_turns turns(true);
  turns.want(wish(9, ""));
  turns.want(wish(8, ""));
  BOOST_TEST(given(turns) == (ordinals{8, 9}), boost::test_tools::per_element());
  BOOST_TEST(given(turns).empty());
}

BOOST_AUTO_TEST_CASE(another_scorer_that_asks_for_a_group_in_turn_gets_the_turn) {
  score_turns turns(true);
  turns.want(wish(0));
  turns.want(wish(1));
  BOOST_TEST(given(turns) == ordinals{0}, boost::test_tools::per_element());
  BOOST_TEST((turns.in_turn({0, 0}) != nullptr));
  turns.want(wish(0));
  BOOST_TEST((turns.in_turn({0, 0}) == nullptr));
  BOOST_TEST(given(turns) == ordinals{0}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_group_that_ends_without_an_answer_gives_its_turn_to_the_next) {
  score_turns turns(true);
  turns.want(wish(0));
  turns.want(wish(1));
  BOOST_TEST(given(turns) == ordinals{0}, boost::test_tools::per_element());
  turns.finish({0, 0}); // a tombstone
  BOOST_TEST((turns.in_turn({0, 0}) == nullptr));
  const auto is_known = [](group_ref ref) { return ref.ordinal == 0; };
  BOOST_TEST(given(turns, is_known) == ordinals{1}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(whatever_the_order_of_arrival_each_key_is_scored_in_the_order_of_ordinals) {
  for (std::uint32_t seed = 0; seed < 50; ++seed) {
    std::mt19937 random(seed);
    std::vector<std::uint64_t> arrivals(40);
    for (std::uint64_t i = 0; i < arrivals.size(); ++i)
      arrivals[i] = i;
    std::shuffle(arrivals.begin(), arrivals.end(), random);
    score_turns turns(true);
    std::set<std::uint64_t> known;
    std::map<std::string, std::vector<std::uint64_t>> order;
    const auto is_known = [&](group_ref ref) { return known.contains(ref.ordinal); };
    for (auto ordinal : arrivals) {
      if (ordinal % 5 == 0)
        known.insert(ordinal); // of an environment without state
      else
        turns.want(wish(ordinal, ordinal % 2 == 0 ? "a" : "b"));
      while (const auto next = turns.next(is_known)) {
        order[next->key].push_back(next->group.ordinal);
        known.insert(next->group.ordinal);
        turns.finish(next->group);
      }
    }
    BOOST_TEST(order["a"].size() + order["b"].size() == 32U);
    for (const auto &[key, list] : order)
      BOOST_TEST(std::ranges::is_sorted(list), "seed " << seed << ", key " << key);
  }
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace millrace
