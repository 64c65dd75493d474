// SPDX-License-Identifier: Apache-2.0
#include "config/assignments.hpp"

#include <boost/test/unit_test.hpp>

using namespace millrace;

BOOST_AUTO_TEST_SUITE(assignments)

BOOST_AUTO_TEST_CASE(tables_are_taken_apart_with_the_line_of_each_key) {
  const auto parsed = parse_toml("seq_len = 8\n[scorer]\n\ninstances = 2\n", "f.toml");
  BOOST_REQUIRE(parsed);
  BOOST_REQUIRE_EQUAL(parsed->size(), 2U);
  BOOST_TEST((*parsed)[0].name() == "seq_len");
  BOOST_TEST((*parsed)[0].place == "f.toml:1");
  BOOST_TEST((*parsed)[1].name() == "scorer.instances");
  BOOST_TEST((*parsed)[1].place == "f.toml:4");
}

BOOST_AUTO_TEST_CASE(keys_come_in_the_order_of_their_lines) {
  const auto parsed = parse_toml("z = 1\nb = 2\n[a]\nx = 3\n", "f.toml");
  BOOST_REQUIRE(parsed);
  BOOST_TEST((*parsed)[0].name() == "z");
  BOOST_TEST((*parsed)[2].name() == "a.x");
}

BOOST_AUTO_TEST_CASE(text_that_is_not_toml_is_one_line_with_its_place) {
  const auto parsed = parse_toml("a = 1\nb = = 2\n", "f.toml");
  BOOST_REQUIRE(!parsed);
  BOOST_TEST(parsed.error().message.starts_with("f.toml:2: "));
  BOOST_TEST(parsed.error().message.find('\n') == std::string::npos);
}

BOOST_AUTO_TEST_CASE(nesting_without_end_is_refused) {
  BOOST_TEST(!parse_toml("a = " + std::string(100'000, '['), "f.toml"));
  BOOST_TEST(!parse_set("a=" + std::string(100'000, '{')).has_value() ==
             false); // a bare string then
}

BOOST_AUTO_TEST_CASE(bytes_that_are_not_utf8_are_refused) {
  BOOST_TEST(!parse_toml("a = \"\xff\xfe\"\n", "f.toml"));
}

BOOST_AUTO_TEST_CASE(a_set_value_is_toml_or_else_a_bare_string) {
  const auto value_of = [](std::string_view text) { return parse_set(text).value().at(0).value; };
  BOOST_TEST((value_of("a=3") == written_value(std::int64_t{3})));
  BOOST_TEST((value_of("a = true") == written_value(true)));
  BOOST_TEST((value_of("a=0.5") == written_value(0.5)));
  BOOST_TEST((value_of("a=\"3\"") == written_value(std::string("3"))));
  BOOST_TEST((value_of("a=dir/file.mrec") == written_value(std::string("dir/file.mrec"))));
  BOOST_TEST((value_of("a=say \"x\\y\"") == written_value(std::string("say \"x\\y\""))));
  BOOST_TEST((value_of("a=") == written_value(std::string())));
}

BOOST_AUTO_TEST_CASE(a_quoted_part_of_a_set_key_may_hold_dots_and_equals) {
  const auto parsed = parse_set("env.\"a.b=c\".group_size=4");
  BOOST_REQUIRE(parsed);
  BOOST_REQUIRE_EQUAL(parsed->at(0).path.size(), 3U);
  BOOST_TEST(parsed->at(0).path[1] == "a.b=c");
}

BOOST_AUTO_TEST_CASE(a_set_without_equals_or_over_two_lines_is_refused) {
  BOOST_TEST(!parse_set("seq_len"));
  BOOST_TEST(!parse_set("=3"));
  BOOST_TEST(!parse_set("a b=3"));
  BOOST_TEST(!parse_set("a=3\nb=4"));
}

BOOST_AUTO_TEST_CASE(printable_text_is_one_short_line) {
  BOOST_TEST(printable("a\nb\x1b[0m") == "a\\x0ab\\x1b[0m");
  BOOST_TEST(printable(std::string(1000, 'x')).size() == 83U);
}

BOOST_AUTO_TEST_SUITE_END()
