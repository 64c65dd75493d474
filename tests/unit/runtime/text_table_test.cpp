// SPDX-License-Identifier: Apache-2.0
#include "runtime/text_table.hpp"

#include <boost/test/unit_test.hpp>

namespace millrace {
namespace {

BOOST_AUTO_TEST_CASE(columns_are_as_wide_as_their_widest_cell) {
  BOOST_TEST(text_table({{"name", "n"}, {"a", "1,234"}, {"bcdef"}}) == "name       n\n"
                                                                       "a      1,234\n"
                                                                       "bcdef\n");
}

BOOST_AUTO_TEST_CASE(digits_are_grouped_by_three) {
  BOOST_TEST(grouped(0) == "0");
  BOOST_TEST(grouped(999) == "999");
  BOOST_TEST(grouped(1000) == "1,000");
  BOOST_TEST(grouped(123456) == "123,456");
  BOOST_TEST(grouped(~0ULL) == "18,446,744,073,709,551,615");
}

BOOST_AUTO_TEST_CASE(bytes_have_the_unit_that_people_read) {
  BOOST_TEST(byte_count(0) == "0 B");
  BOOST_TEST(byte_count(1023) == "1023 B");
  BOOST_TEST(byte_count(1536) == "1.5 KiB");
  BOOST_TEST(byte_count(std::uint64_t{3} << 30) == "3.0 GiB");
}

BOOST_AUTO_TEST_CASE(durations_have_the_unit_that_people_read) {
  BOOST_TEST(duration_text(0) == "0.0 s");
  BOOST_TEST(duration_text(9'940) == "9.9 s");
  BOOST_TEST(duration_text(9'960) == "10 s");
  BOOST_TEST(duration_text(412'345) == "412 s");
  BOOST_TEST(duration_text(999'499) == "999 s");
  BOOST_TEST(duration_text(999'500) == "17 min");
  BOOST_TEST(duration_text(2 * 3'600'000) == "2.0 h");
  BOOST_TEST(duration_text(49 * 3'600'000) == "2 d");
}

} // namespace
} // namespace millrace
