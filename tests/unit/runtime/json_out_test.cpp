// SPDX-License-Identifier: Apache-2.0
#include "runtime/json_out.hpp"

#include <limits>

#include <boost/test/unit_test.hpp>

#include "runtime/json.hpp"

using namespace millrace;

BOOST_AUTO_TEST_SUITE(json_writing)

BOOST_AUTO_TEST_CASE(a_number_that_is_not_finite_is_written_as_null) {
  json::tree out;
  out["nan"] = std::numeric_limits<double>::quiet_NaN();
  out["inf"] = -std::numeric_limits<float>::infinity();
  BOOST_TEST(json::dump(out) == R"({"nan":null,"inf":null})");
}

BOOST_AUTO_TEST_CASE(bytes_that_are_not_utf8_are_written_as_replacement_characters) {
  json::tree out;
  out["text"] = "cut \xED\xA0\xBD!";
  const auto text = json::dump(out);
  json::document doc;
  BOOST_TEST(doc.parse(text).has_value());
  BOOST_TEST(text.find("cut \xEF\xBF\xBD") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(fields_keep_their_order) {
  json::tree out;
  out["z"] = 1;
  out["a"] = {0, 1};
  BOOST_TEST(json::dump(out) == R"({"z":1,"a":[0,1]})");
}

BOOST_AUTO_TEST_SUITE_END()
