// SPDX-License-Identifier: Apache-2.0
#include "runtime/random.hpp"

#include <array>

#include <boost/test/unit_test.hpp>

namespace millrace {
namespace {

BOOST_AUTO_TEST_CASE(a_seed_gives_the_published_numbers_of_splitmix64) {
  random_source random(1234567);
  for (const std::uint64_t want :
       {6457827717110365317U, 3203168211198807973U, 9817491932198370423U})
    BOOST_TEST(random.next() == want);
}

BOOST_AUTO_TEST_CASE(numbers_stay_in_their_bounds_and_reach_both) {
  random_source random(1);
  std::array<int, 5> seen{};
  for (int i = 0; i < 1000; ++i)
    ++seen.at(random.between(3, 7) - 3);
  for (const int count : seen)
    BOOST_TEST(count > 100);
}

BOOST_AUTO_TEST_CASE(derived_sources_depend_on_seed_and_label_only) {
  random_source a(5);
  BOOST_TEST(a.derive(1).next() == random_source(5).derive(1).next());
  BOOST_TEST(a.derive(1).next() != a.derive(2).next());
  BOOST_TEST(a.derive(1).next() != random_source(6).derive(1).next());
}

} // namespace
} // namespace millrace
