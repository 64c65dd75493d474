// SPDX-License-Identifier: Apache-2.0
#include "runtime/utf8.hpp"

#include <algorithm>
#include <string>

#include <boost/test/unit_test.hpp>

using namespace millrace;

BOOST_AUTO_TEST_SUITE(utf8)

BOOST_AUTO_TEST_CASE(characters_of_every_length_are_valid) {
  BOOST_TEST(is_utf8("a\xC2\x85\xE2\x80\xA8\xF0\x9F\x98\x80"));
  BOOST_TEST(is_utf8("\xF4\x8F\xBF\xBF"));
}

BOOST_AUTO_TEST_CASE(surrogates_overlong_and_cut_characters_are_not) {
  for (const char *bad :
       {"\xED\xA0\x80", "\xC0\x80", "\xE0\x80\x80", "\xF4\x90\x80\x80", "\xE2\x80", "\x80", "\xFF"})
    BOOST_TEST(!is_utf8(bad));
}

BOOST_AUTO_TEST_CASE(every_bad_byte_becomes_one_replacement_character) {
  BOOST_TEST(to_utf8("a\xFF\xC3\xA9\xE2\x80") == "a\xEF\xBF\xBD\xC3\xA9\xEF\xBF\xBD\xEF\xBF\xBD");
}

BOOST_AUTO_TEST_CASE(a_prefix_ends_between_characters) {
  const std::string text = "a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80";
  for (std::size_t most = 0; most <= text.size() + 1; ++most) {
    const auto prefix = utf8_prefix(text, most);
    BOOST_TEST(is_utf8(prefix));
    BOOST_TEST(prefix.size() <= most);
    BOOST_TEST(prefix.size() + 4 > std::min(most, text.size()));
  }
}

BOOST_AUTO_TEST_CASE(a_prefix_of_bytes_that_are_no_text_is_cut_anyway) {
  BOOST_TEST(utf8_prefix(std::string(10, '\x80'), 7).size() == 7U);
}

BOOST_AUTO_TEST_SUITE_END()
