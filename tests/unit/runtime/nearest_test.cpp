// SPDX-License-Identifier: Apache-2.0
#include "runtime/nearest.hpp"

#include <array>

#include <boost/test/unit_test.hpp>

using namespace millrace;

BOOST_AUTO_TEST_SUITE(nearest_words)

BOOST_AUTO_TEST_CASE(edit_distance_counts_insertions_deletions_and_replacements) {
  BOOST_TEST(edit_distance("", "") == 0U);
  BOOST_TEST(edit_distance("abc", "") == 3U);
  BOOST_TEST(edit_distance("", "abc") == 3U);
  BOOST_TEST(edit_distance("kitten", "sitting") == 3U);
  BOOST_TEST(edit_distance("inspekt", "inspect") == 1U);
}

BOOST_AUTO_TEST_CASE(the_nearest_word_is_the_first_of_the_closest) {
  constexpr std::array<std::string_view, 3> words{"import", "inspect", "synth"};
  BOOST_TEST(nearest("inspct", words).value() == "inspect");
  constexpr std::array<std::string_view, 2> alike{"bat", "hat"};
  BOOST_TEST(nearest("cat", alike).value() == "bat");
}

BOOST_AUTO_TEST_CASE(a_word_unlike_all_has_no_nearest) {
  constexpr std::array<std::string_view, 2> words{"import", "inspect"};
  BOOST_TEST(!nearest("zzzzzz", words).has_value());
}

BOOST_AUTO_TEST_SUITE_END()
