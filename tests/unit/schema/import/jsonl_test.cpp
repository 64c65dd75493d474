// SPDX-License-Identifier: Apache-2.0
#include "schema/import/jsonl.hpp"

#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

using namespace millrace;

namespace {

std::vector<std::string> lines_of(std::string_view text) {
  line_reader reader(text);
  std::vector<std::string> out;
  while (const auto line = reader.next())
    out.push_back(std::to_string(line->number) + ":" + std::string(line->text));
  return out;
}

using lines = std::vector<std::string>;

} // namespace

BOOST_AUTO_TEST_SUITE(json_lines)

BOOST_AUTO_TEST_CASE(a_line_ends_at_lf_only) {
  const std::string odd = "a\xC2\x85"
                          "b\xE2\x80\xA8"
                          "c\xE2\x80\xA9"
                          "d\re\x0b\x0c"
                          "f";
  BOOST_TEST((lines_of(odd + "\nnext\n") == lines{"1:" + odd, "2:next"}));
}

BOOST_AUTO_TEST_CASE(the_last_line_may_lack_its_end) {
  BOOST_TEST((lines_of("a\nb") == lines{"1:a", "2:b"}));
}

BOOST_AUTO_TEST_CASE(blank_lines_are_passed_over_and_counted) {
  BOOST_TEST((lines_of("\n \t\r\nb\r\n\n") == lines{"3:b\r"}));
  BOOST_TEST(lines_of("").empty());
}

BOOST_AUTO_TEST_SUITE_END()
