// SPDX-License-Identifier: Apache-2.0
#include <iostream>
#include <sstream>

#include <boost/test/unit_test.hpp>

#include "actors/conform/conform.hpp"

BOOST_AUTO_TEST_CASE(every_golden_case_passes) {
  std::ostringstream out;
  const auto sum =
      millrace::conform(std::filesystem::path(MILLRACE_SOURCE_DIR) / "tests/golden", out);
  std::cout << out.str();
  BOOST_REQUIRE_MESSAGE(sum, sum.error().message);
  BOOST_TEST(sum->failed == 0U);
  BOOST_TEST(sum->passed >= 263U); // fewer means that a case got lost
}
