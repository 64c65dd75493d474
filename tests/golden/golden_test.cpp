// SPDX-License-Identifier: Apache-2.0
#include <iostream>
#include <sstream>

#include <boost/test/unit_test.hpp>

#include "actors/conform/conform.hpp"

namespace {

std::size_t lines_with(const std::string &text, std::string_view piece) {
  std::size_t count = 0;
  for (auto at = text.find(piece); at != std::string::npos; at = text.find(piece, at + 1))
    ++count;
  return count;
}

} // namespace

BOOST_AUTO_TEST_CASE(every_golden_case_that_is_known_passes) {
  std::ostringstream out;
  const auto sum =
      millrace::conform(std::filesystem::path(MILLRACE_SOURCE_DIR) / "tests/golden", out);
  std::cout << out.str();
  BOOST_REQUIRE_MESSAGE(sum, sum.error().message);
  BOOST_TEST(sum->failed == 0U);
  // All of packing and partition, and what is there of graph and scoring: fewer means that a case
  // got lost or is skipped.
  BOOST_TEST(sum->passed >= 181U);
  BOOST_TEST(lines_with(out.str(), "skipped packing") == 0U);
  BOOST_TEST(lines_with(out.str(), "skipped partition") == 0U);
}
