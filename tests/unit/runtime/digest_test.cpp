// SPDX-License-Identifier: Apache-2.0
#include "runtime/digest.hpp"

#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

namespace millrace {
namespace {

digest128 digest_of(std::string_view text) {
  digest_writer digest;
  digest.add(std::as_bytes(std::span(text)));
  return digest.finish();
}

BOOST_AUTO_TEST_CASE(nothing_has_the_published_digest) {
  // XXH3-128 of no bytes, seed 0, as the xxhsum tool prints it.
  BOOST_TEST(digest_of("").hex() == "99aa06d3014798d86001c324468d497f");
}

BOOST_AUTO_TEST_CASE(pieces_give_the_digest_of_the_whole) {
  const std::string text(5000, 'x');
  digest_writer pieces;
  for (std::size_t at = 0; at < text.size(); at += 7)
    pieces.add(std::as_bytes(std::span(std::string_view(text).substr(at, 7))));
  BOOST_TEST(pieces.finish().hex() == digest_of(text).hex());
}

BOOST_AUTO_TEST_CASE(integers_are_little_endian) {
  digest_writer numbers;
  numbers.add_u32(0x04030201);
  numbers.add_u64(0x0C0B0A0908070605);
  BOOST_TEST(numbers.finish().hex() ==
             digest_of("\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c").hex());
}

BOOST_AUTO_TEST_CASE(a_string_is_its_length_and_its_bytes) {
  digest_writer one;
  one.add_string("ab");
  one.add_string("c");
  digest_writer other;
  other.add_string("a");
  other.add_string("bc");
  BOOST_TEST(one.finish().hex() != other.finish().hex());
  digest_writer by_hand;
  by_hand.add(std::as_bytes(std::span(std::string_view("\2\0\0\0ab\1\0\0\0c", 11))));
  BOOST_TEST(one.finish().hex() == by_hand.finish().hex());
}

BOOST_AUTO_TEST_CASE(a_digest_can_be_finished_and_gone_on_with) {
  digest_writer digest;
  digest.add(std::as_bytes(std::span(std::string_view("ab"))));
  BOOST_TEST(digest.finish().hex() == digest_of("ab").hex());
  digest.add(std::as_bytes(std::span(std::string_view("c"))));
  BOOST_TEST(digest.finish().hex() == digest_of("abc").hex());
}

BOOST_AUTO_TEST_CASE(hex_reads_back) {
  const auto digest = digest_of("millrace");
  BOOST_TEST((digest128::from_hex(digest.hex()).value() == digest));
}

BOOST_AUTO_TEST_CASE(text_that_is_no_digest_is_refused) {
  const auto good = digest_of("").hex();
  const auto with_first = [&](char c) {
    auto text = good;
    text[0] = c;
    return text;
  };
  for (const auto &text : {std::string(), good.substr(1), good + '0', with_first('G'),
                           with_first('A'), with_first(' ')})
    BOOST_TEST(!digest128::from_hex(text).has_value(), text);
}

} // namespace
} // namespace millrace
