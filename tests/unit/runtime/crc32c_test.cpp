// SPDX-License-Identifier: Apache-2.0
#include "runtime/crc32c.hpp"

#include <algorithm>
#include <numeric>
#include <string_view>
#include <vector>

#include <boost/test/unit_test.hpp>

namespace millrace {
namespace {

std::uint32_t crc_of(const std::vector<std::uint8_t> &bytes) {
  return crc32c(std::as_bytes(std::span(bytes)));
}

/// Bit by bit, as the polynomial says.
std::uint32_t reference(std::span<const std::uint8_t> bytes) {
  std::uint32_t crc = ~0U;
  for (const auto byte : bytes) {
    crc ^= byte;
    for (int bit = 0; bit < 8; ++bit)
      crc = (crc >> 1) ^ (0x82F63B78U & (~(crc & 1U) + 1U));
  }
  return ~crc;
}

BOOST_AUTO_TEST_CASE(the_vectors_of_rfc_3720_come_out) {
  std::vector<std::uint8_t> bytes(32, 0x00);
  BOOST_TEST(crc_of(bytes) == 0x8A9136AAU);
  std::fill(bytes.begin(), bytes.end(), std::uint8_t{0xFF});
  BOOST_TEST(crc_of(bytes) == 0x62A8AB43U);
  std::iota(bytes.begin(), bytes.end(), std::uint8_t{0});
  BOOST_TEST(crc_of(bytes) == 0x46DD794EU);
  std::reverse(bytes.begin(), bytes.end());
  BOOST_TEST(crc_of(bytes) == 0x113FDB5CU);
}

BOOST_AUTO_TEST_CASE(nothing_is_zero_and_leaves_a_value_as_it_is) {
  BOOST_TEST(crc32c({}) == 0U);
  BOOST_TEST(crc32c({}, 0x1234U) == 0x1234U);
}

BOOST_AUTO_TEST_CASE(pieces_give_the_value_of_the_whole_at_any_address_and_length) {
  std::vector<std::uint8_t> bytes(100);
  std::iota(bytes.begin(), bytes.end(), std::uint8_t{7});
  const auto all = std::as_bytes(std::span(bytes));
  for (std::size_t from = 0; from < 9; ++from)
    for (std::size_t size = 0; from + size <= bytes.size(); ++size) {
      const auto whole = all.subspan(from, size);
      const auto want = reference(std::span(bytes).subspan(from, size));
      BOOST_REQUIRE_EQUAL(crc32c(whole), want);
      const auto half = size / 2;
      BOOST_REQUIRE_EQUAL(crc32c(whole.subspan(half), crc32c(whole.first(half))), want);
    }
}

} // namespace
} // namespace millrace
