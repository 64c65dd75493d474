// SPDX-License-Identifier: Apache-2.0
#include "runtime/dtype.hpp"

#include <array>
#include <string>

#include <boost/test/unit_test.hpp>

namespace millrace {
namespace {

BOOST_AUTO_TEST_CASE(every_name_leads_back_to_its_type) {
  for (std::size_t i = 0; i < dtype_count; ++i) {
    const auto found = dtype_named(name_of(static_cast<dtype>(i)));
    BOOST_REQUIRE(found);
    BOOST_TEST(static_cast<std::size_t>(*found) == i);
  }
}

BOOST_AUTO_TEST_CASE(sizes_are_those_of_numpy) {
  BOOST_TEST(size_of(dtype::boolean) == 1U);
  BOOST_TEST(size_of(dtype::uint8) == 1U);
  BOOST_TEST(size_of(dtype::int16) == 2U);
  BOOST_TEST(size_of(dtype::int32) == 4U);
  BOOST_TEST(size_of(dtype::int64) == 8U);
  BOOST_TEST(size_of(dtype::float16) == 2U);
  BOOST_TEST(size_of(dtype::bfloat16) == 2U);
  BOOST_TEST(size_of(dtype::float32) == 4U);
  BOOST_TEST(size_of(dtype::float64) == 8U);
}

BOOST_AUTO_TEST_CASE(other_names_have_no_type) {
  for (const auto *name : {"", "float", "Float32", "uint16", "float32 ", "bool_"})
    BOOST_TEST(!dtype_named(name).has_value(), name);
}

} // namespace
} // namespace millrace
