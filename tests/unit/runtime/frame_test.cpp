// SPDX-License-Identifier: Apache-2.0
#include "runtime/frame.hpp"

#include <algorithm>
#include <numeric>

#include <boost/test/unit_test.hpp>

namespace millrace {
namespace {

std::vector<std::byte> some_bytes(std::size_t n) {
  std::vector<std::byte> out(n);
  for (std::size_t i = 0; i < n; ++i)
    out[i] = static_cast<std::byte>(i);
  return out;
}

BOOST_AUTO_TEST_CASE(a_copy_is_aligned_and_equal) {
  const auto bytes = some_bytes(100);
  const auto copy = frame::copy_of(bytes);
  BOOST_TEST(reinterpret_cast<std::uintptr_t>(copy.data()) % 64 == 0U);
  BOOST_TEST(std::ranges::equal(copy.bytes(), bytes));
  BOOST_TEST(copy.data() != bytes.data());
}

BOOST_AUTO_TEST_CASE(an_owner_lives_until_the_last_frame_on_it_is_gone) {
  auto owner = std::make_shared<std::vector<std::byte>>(some_bytes(10));
  const std::weak_ptr<const void> watch = owner;
  frame part;
  {
    const frame whole(owner, *owner);
    part = whole.sub(2, 3);
    owner.reset();
  }
  BOOST_TEST(!watch.expired());
  BOOST_TEST(part.size() == 3U);
  BOOST_TEST((part.data()[0] == std::byte{2}));
  part = frame();
  BOOST_TEST(watch.expired());
}

BOOST_AUTO_TEST_CASE(parts_may_be_empty_at_both_ends) {
  const auto whole = frame::copy_of(some_bytes(4));
  BOOST_TEST(whole.sub(0, 0).empty());
  BOOST_TEST(whole.sub(4, 0).empty());
  BOOST_TEST(whole.sub(0, 4).size() == 4U);
  BOOST_TEST(frame().empty());
}

BOOST_AUTO_TEST_CASE(memory_counts_once_until_its_last_reference_is_gone) {
  const auto meter = std::make_shared<memory_meter>();
  {
    const auto one = frame::copy_of(some_bytes(1000), meter);
    const auto again = one;
    auto part = one.sub(10, 10);
    BOOST_TEST(meter->held == 1000U);
    buffer other(500, meter);
    BOOST_TEST(meter->held == 1500U);
    part = std::move(other).freeze(0, 1);
    BOOST_TEST(meter->held == 1500U); // at its allocated size
  }
  BOOST_TEST(meter->held == 0U);
  BOOST_TEST(meter->held_peak == 1500U);
}

BOOST_AUTO_TEST_CASE(a_frozen_buffer_is_the_memory_that_was_written) {
  buffer memory(64);
  std::ranges::fill(memory.bytes(), std::byte{7});
  const auto *before = memory.data();
  const auto frozen = std::move(memory).freeze(16, 32);
  BOOST_TEST(frozen.data() == before + 16);
  BOOST_TEST(frozen.size() == 32U);
}

} // namespace
} // namespace millrace
