// SPDX-License-Identifier: Apache-2.0
#include "runtime/json_stream.hpp"

#include <string>

#include <boost/test/unit_test.hpp>

#include "runtime/json.hpp"

using namespace millrace;
using kind = json::piece::kind;

namespace {

/// The pieces of a text that comes `step` bytes at a time: "{ k:a 1 }"; then the error, if any.
std::string read(std::string_view text, std::size_t step = 1) {
  std::string out;
  json::stream_reader reader([&out](const json::piece &in) -> status {
    static constexpr std::string_view marks = "{}[]";
    if (!out.empty())
      out += ' ';
    if (in.what <= kind::end_array)
      out += marks[static_cast<std::size_t>(in.what)];
    else if (in.what == kind::null)
      out += "null";
    else
      out += std::string(in.what == kind::key    ? "k:"
                         : in.what == kind::text ? "t:"
                                                 : "") +
             std::string(in.text);
    return {};
  });
  for (std::size_t at = 0; at < text.size(); at += step)
    if (const auto fed = reader.feed(text.substr(at, step)); !fed)
      return out + " | " + fed.error().message;
  const auto ended = reader.finish();
  return ended ? out : out + " | " + ended.error().message;
}

std::string nested(std::size_t depth, std::string_view inner) {
  return std::string(depth, '[') + std::string(inner) + std::string(depth, ']');
}

} // namespace

BOOST_AUTO_TEST_SUITE(json_stream)

BOOST_AUTO_TEST_CASE(pieces_come_in_order_however_the_text_is_cut) {
  constexpr std::string_view text =
      R"( {"a":[1,-2.5e3,"x\"\u00e9"],"b":{},"":null,"c":[ ] ,"d":true} )";
  constexpr std::string_view pieces =
      R"({ k:a [ 1 -2.5e3 t:x\"\u00e9 ] k:b { } k: null k:c [ ] k:d true })";
  for (std::size_t step = 1; step <= text.size(); ++step)
    BOOST_TEST(read(text, step) == pieces);
}

BOOST_AUTO_TEST_CASE(a_number_alone_ends_with_the_text) { BOOST_TEST(read("12") == "12"); }

BOOST_AUTO_TEST_CASE(what_is_not_json_is_refused_at_its_byte) {
  BOOST_TEST(read("[NaN]") == "[ | 'NaN' is not JSON (byte 4)");
  BOOST_TEST(read("[01]") == "[ | '01' is not JSON (byte 3)");
  BOOST_TEST(read("[1 2]") == "[ 1 | '2' where ',' or ']' should be (byte 3)");
  BOOST_TEST(read("[1}") == "[ 1 | '}' where ',' or ']' should be (byte 2)");
  BOOST_TEST(read("{1:2}") == "{ | '1' where a field name should be (byte 1)");
  BOOST_TEST(read("{\"a\" 2}") == "{ k:a | '2' where ':' should be (byte 5)");
  BOOST_TEST(read("{\"a\":1,}") == "{ k:a 1 | '}' where a field name should be (byte 7)");
  BOOST_TEST(read("[1,]") == "[ 1 | ']' where a value should be (byte 3)");
  BOOST_TEST(read("[\"\\x\"]") == "[ | 'x' after a backslash is not an escape (byte 3)");
  BOOST_TEST(read("[\"\\u12g4\"]") == "[ | 'g' where a hexadecimal digit should be (byte 6)");
  BOOST_TEST(read("[\"\n\"]") == "[ | a raw control character (byte 0x0a) in a string (byte 2)");
  BOOST_TEST(read("{} x") == "{ } | 'x' follows the end of the value (byte 3)");
}

BOOST_AUTO_TEST_CASE(a_text_that_ends_early_is_refused) {
  for (const char *text : {"[", "[1", "[1,", "{\"a", "{\"a\"", "{\"a\":", "\"x\\"})
    BOOST_TEST(read(text).find("ends inside a value") != std::string::npos);
  BOOST_TEST(read(" ") == " | there is no value (byte 1)");
}

BOOST_AUTO_TEST_CASE(a_value_is_complete_when_only_space_may_follow) {
  json::stream_reader reader([](const json::piece &) { return status(); });
  BOOST_TEST(reader.feed("{\"a\":[]").has_value());
  BOOST_TEST(!reader.complete());
  BOOST_TEST(reader.feed("}").has_value());
  BOOST_TEST(reader.complete());
}

BOOST_AUTO_TEST_CASE(nesting_stops_at_the_limit_of_all_readers) {
  BOOST_TEST(read(nested(json::max_depth, "1")).find('|') == std::string::npos);
  BOOST_TEST(read(nested(json::max_depth + 1, "")).find('|') == std::string::npos);
  BOOST_TEST(read(nested(json::max_depth + 1, "1")).find("deeper than 512") != std::string::npos);
  BOOST_TEST(read(std::string(100'000, '['), 4096).find("deeper than 512") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(texts_are_cut_and_numbers_refused_at_the_limit_of_a_piece) {
  const std::string text(json::most_piece + 1, 'x');
  BOOST_TEST(read("\"" + text + "\"") == "t:" + text.substr(0, json::most_piece));
  const std::string number(json::most_piece, '1');
  BOOST_TEST(read("[" + number + "]") == "[ " + number + " ]");
  BOOST_TEST(read("[1" + number + "]").find("a number of more than") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(an_error_of_the_taker_ends_the_reading_for_good) {
  int calls = 0;
  json::stream_reader reader([&calls](const json::piece &) -> status {
    ++calls;
    return fail(errc::bad_value, "enough");
  });
  for (int i = 0; i < 3; ++i)
    BOOST_TEST(reader.feed("[[").error().message == "enough");
  BOOST_TEST(reader.finish().error().message == "enough");
  BOOST_TEST(calls == 1);
}

BOOST_AUTO_TEST_SUITE_END()
