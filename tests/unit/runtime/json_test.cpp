// SPDX-License-Identifier: Apache-2.0
#include "runtime/json.hpp"

#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "runtime/json_scan.hpp"

using namespace millrace;

namespace {

/// The error of parsing a text, or "" if it parses.
std::string refusal(std::string_view text) {
  json::document doc;
  const auto root = doc.parse(text);
  return root ? "" : root.error().message;
}

/// The error of reading field "a" of a text as a T, or "".
template <class T> std::string misread(std::string_view text) {
  json::document doc;
  const auto root = doc.parse(text);
  BOOST_REQUIRE(root);
  const auto read = root->get<T>("a");
  return read ? "" : read.error().message;
}

} // namespace

BOOST_AUTO_TEST_SUITE(json_reading)

BOOST_AUTO_TEST_CASE(an_error_names_the_path_of_its_value) {
  json::document doc;
  const auto root = doc.parse(R"({"traces":[{"nodes":[{},{"token_ids":[1,2,2.5]}]}]})");
  BOOST_REQUIRE(root);
  const auto traces = root->get<json::value>("traces")->items();
  const auto nodes = (*traces)[0].get<json::value>("nodes")->items();
  const auto ids = (*nodes)[1].get<std::vector<std::int32_t>>("token_ids");
  BOOST_REQUIRE(!ids);
  BOOST_TEST(ids.error().message == "traces[0].nodes[1].token_ids[2]: 2.5 is not an integer");
  BOOST_TEST((*nodes)[0].get<bool>("sampled").error().message ==
             "traces[0].nodes[0].sampled: is missing");
}

BOOST_AUTO_TEST_CASE(an_integer_has_neither_fraction_nor_exponent) {
  BOOST_TEST(misread<std::int64_t>(R"({"a":1.0})") == "a: 1.0 is not an integer");
  BOOST_TEST(misread<std::int64_t>(R"({"a":1e3})") == "a: 1000.0 is not an integer");
  BOOST_TEST(misread<std::int64_t>(R"({"a":"1"})") == "a: a string is not an integer");
  BOOST_TEST(misread<std::int64_t>(R"({"a":true})") == "a: true is not an integer");
  BOOST_TEST(misread<std::int64_t>(R"({"a":-9223372036854775808})") == "");
  BOOST_TEST(misread<std::uint64_t>(R"({"a":18446744073709551615})") == "");
  BOOST_TEST(misread<std::uint64_t>(R"({"a":-1})") == "a: -1 is outside 0 to 18446744073709551615");
}

BOOST_AUTO_TEST_CASE(an_id_beyond_int32_is_refused_and_never_wraps) {
  using ids = std::vector<std::int32_t>;
  BOOST_TEST(misread<ids>(R"({"a":[2147483647]})") == "");
  BOOST_TEST(misread<ids>(R"({"a":[0,2147483648]})") ==
             "a[1]: 2147483648 is outside -2147483648 to 2147483647");
  BOOST_TEST(misread<ids>(R"({"a":[4294967301]})") ==
             "a[0]: 4294967301 is outside -2147483648 to 2147483647");
  BOOST_TEST(misread<ids>(R"({"a":[18446744073709551615]})") ==
             "a[0]: 18446744073709551615 is outside -2147483648 to 2147483647");
}

BOOST_AUTO_TEST_CASE(null_is_absent_only_where_the_caller_says_so) {
  json::document doc;
  const auto root = doc.parse(R"({"a":null})");
  BOOST_REQUIRE(root);
  BOOST_TEST(!root->find<double>("a", json::nulls::as_absent)->has_value());
  BOOST_TEST(!root->find<double>("b", json::nulls::refused)->has_value());
  BOOST_TEST(root->find<double>("a", json::nulls::refused).error().message ==
             "a: null is not a number");
  BOOST_TEST(misread<double>(R"({"a":null})") == "a: null is not a number");
}

BOOST_AUTO_TEST_CASE(a_float_must_be_finite_as_float32) {
  BOOST_TEST(misread<std::vector<float>>(R"({"a":[-1e-300,0,-0.5]})") == "");
  BOOST_TEST(misread<std::vector<float>>(R"({"a":[1e39]})") ==
             "a[0]: 1e+39 does not fit a float32");
  BOOST_TEST(misread<std::vector<float>>(R"({"a":[0,null]})") == "a[1]: null is not a number");
}

BOOST_AUTO_TEST_CASE(flags_are_true_and_false_or_1_and_0) {
  using flags = std::vector<std::uint8_t>;
  json::document doc;
  const auto read = doc.parse(R"({"a":[true,false,1,0]})")->get<flags>("a");
  BOOST_TEST((*read == flags{1, 0, 1, 0}));
  BOOST_TEST(misread<flags>(R"({"a":[2]})") == "a[0]: 2 is not true or false");
  BOOST_TEST(misread<flags>(R"({"a":[1.0]})") == "a[0]: 1.0 is not true or false");
}

BOOST_AUTO_TEST_CASE(a_number_that_nothing_holds_is_refused_with_its_path) {
  BOOST_TEST(refusal(R"({"r":{"x":{"score":NaN}}})") ==
             "r.x.score: NaN is not a JSON number (byte 19)");
  BOOST_TEST(refusal(R"([-Infinity])") == "[0]: -Infinity is not a JSON number (byte 1)");
  BOOST_TEST(refusal(R"({"reward":1e999})") == "reward: 1e999 does not fit a double (byte 10)");
  BOOST_TEST(refusal(R"([18446744073709551616])") ==
             "[0]: 18446744073709551616 does not fit 64 bits (byte 1)");
  BOOST_TEST(refusal("[1e-999]") == "");
}

BOOST_AUTO_TEST_CASE(a_lone_surrogate_is_refused_wherever_it_stands) {
  BOOST_TEST(refusal(R"({"text":"end \ud83d"})") ==
             R"(text: \ud83d is half of a character (byte 13))");
  BOOST_TEST(refusal(R"({"text":"\ude00 start"})") ==
             R"(text: \ude00 is half of a character (byte 9))");
  BOOST_TEST(refusal(R"({"text":"\ud83d\u0041"})") ==
             R"(text: \ud83d is half of a character (byte 9))");
  BOOST_TEST(refusal(R"({"text":"\ud83d\ude00"})") == "");
  BOOST_TEST(refusal(R"({"\udead":1})") == R"(\udead is half of a character (byte 2))");
}

BOOST_AUTO_TEST_CASE(bytes_that_are_not_utf8_are_refused) {
  BOOST_TEST(refusal("{\"t\":\"\xff\"}") == "t: byte 0xff is not UTF-8 (byte 6)");
  BOOST_TEST(refusal("{\"t\":\"\xed\xa0\x80\"}") == "t: byte 0xed is not UTF-8 (byte 6)");
}

BOOST_AUTO_TEST_CASE(nesting_up_to_the_cap_is_read_and_one_more_is_an_error) {
  const auto nested = [](std::size_t depth) {
    return std::string(depth, '[') + "1" + std::string(depth, ']');
  };
  BOOST_TEST(refusal(nested(json::max_depth)) == "");
  BOOST_TEST(refusal(nested(json::max_depth + 1)).find("nested deeper than 512 levels") !=
             std::string::npos);
  BOOST_TEST(refusal(std::string(100'000, '[')).find("nested deeper than 512 levels") !=
             std::string::npos);
  BOOST_TEST(refusal(nested(json::max_depth + 1)).size() < 400);
}

BOOST_AUTO_TEST_CASE(a_text_that_is_not_json_says_where) {
  BOOST_TEST(refusal("<PLACEHOLDER ROW>") == "'<PLACEHOLDER ROW>' is not JSON (byte 0)");
  BOOST_TEST(refusal("") == "there is no value (byte 0)");
  BOOST_TEST(refusal(R"({"a":[1,2)") == "a[1]: the text ends inside a value (byte 9)");
  BOOST_TEST(refusal(R"({"a":"cut)") == "a: the text ends inside a string (byte 9)");
  BOOST_TEST(refusal("{} {}") == "'{}' follows the end of the value (byte 3)");
  BOOST_TEST(refusal("{\"a\":\"x\ty\"}") ==
             "a: a raw control character (byte 0x09) in a string (byte 7)");
  BOOST_TEST(refusal("[01]") == "[0]: '01' is not JSON (byte 1)");
}

BOOST_AUTO_TEST_CASE(a_document_reads_one_text_after_the_other) {
  json::document doc;
  BOOST_REQUIRE(doc.parse("[1]"));
  BOOST_REQUIRE(!doc.parse("[1"));
  const auto root = doc.parse(R"({"a":"two"})");
  BOOST_TEST(*root->get<std::string_view>("a") == "two");
}

BOOST_AUTO_TEST_CASE(a_path_does_not_carry_control_characters_into_a_message) {
  json::document doc;
  const auto root = doc.parse(R"({"a\nb":{}})");
  const auto member = root->members()->front();
  BOOST_TEST(member.value.as<bool>().error().message ==
             R"(["a?b"]: an object is not true or false)");
}

BOOST_AUTO_TEST_CASE(repair_keeps_all_but_the_defects) {
  const auto fixed = json::repair(R"({"a":NaN,"b":"x\ud83d","c":[1e999, 2]})");
  BOOST_REQUIRE(fixed);
  BOOST_TEST(fixed->text == "{\"a\":null,\"b\":\"x\xEF\xBF\xBD\",\"c\":[null, 2]}");
  BOOST_REQUIRE(fixed->defects.size() == 3);
  BOOST_TEST(fixed->defects[1].path == "b");
  BOOST_TEST(fixed->defects[2].path == "c[0]");
}

BOOST_AUTO_TEST_CASE(repair_does_not_make_json_of_what_is_none) {
  BOOST_TEST(!json::repair("{\"a\":NaN"));
  BOOST_TEST(!json::repair("nonsense"));
}

BOOST_AUTO_TEST_SUITE_END()
