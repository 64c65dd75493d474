// SPDX-License-Identifier: Apache-2.0
#include "actors/scorer/hint_cache.hpp"

#include <boost/test/unit_test.hpp>

using namespace millrace;

namespace {

constexpr std::size_t room_for_two = 2 * (128 + 1 + 4);
const std::vector<std::int32_t> one{1};

bool has(hint_cache &cache, std::string_view text) { return cache.find(text).has_value(); }

} // namespace

BOOST_AUTO_TEST_SUITE(hint_caches)

BOOST_AUTO_TEST_CASE(what_was_added_is_found) {
  hint_cache cache(room_for_two);
  BOOST_TEST(!has(cache, "a"));
  cache.add("a", one);
  BOOST_TEST(cache.find("a").value() == one);
}

BOOST_AUTO_TEST_CASE(the_longest_unused_goes_first) {
  hint_cache cache(room_for_two);
  cache.add("a", one);
  cache.add("b", one);
  BOOST_TEST(has(cache, "a"));
  cache.add("c", one);
  BOOST_TEST(has(cache, "a"));
  BOOST_TEST(!has(cache, "b"));
  BOOST_TEST(has(cache, "c"));
}

BOOST_AUTO_TEST_CASE(it_never_holds_more_than_its_bound) {
  hint_cache cache(room_for_two);
  for (int i = 0; i < 100; ++i) {
    cache.add(std::string(1, static_cast<char>('a' + i % 26)), one);
    BOOST_TEST(cache.bytes() <= room_for_two);
  }
  cache.add(std::string(room_for_two, 'x'), one);
  BOOST_TEST(!has(cache, std::string(room_for_two, 'x')));
}

BOOST_AUTO_TEST_CASE(the_same_text_counts_once) {
  hint_cache cache(room_for_two);
  cache.add("a", one);
  const auto before = cache.bytes();
  cache.add("a", one);
  BOOST_TEST(cache.bytes() == before);
}

BOOST_AUTO_TEST_SUITE_END()
