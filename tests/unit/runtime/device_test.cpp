// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/device.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <boost/mpl/list.hpp>
#include <boost/test/unit_test.hpp>

#include "runtime/device/block_pool.hpp"
#include "tests/support/devices.hpp"

using namespace millrace;
using namespace millrace::test;

namespace {

/// Bytes that differ from place to place and from `seed` to `seed`.
std::vector<std::byte> pattern(std::size_t size, std::uint32_t seed) {
  std::vector<std::byte> bytes(size);
  std::uint32_t x = seed * 2654435761U + 1;
  for (auto &byte : bytes) {
    x = x * 1664525U + 1013904223U;
    byte = static_cast<std::byte>(x >> 24U);
  }
  return bytes;
}

device_upload sent(device &on, const std::vector<std::vector<std::byte>> &pieces) {
  const std::vector<std::span<const std::byte>> spans(pieces.begin(), pieces.end());
  return must(on.upload(spans));
}

std::vector<std::byte> read_back(device &on, const std::byte *from, std::size_t size) {
  std::vector<std::byte> bytes(size);
  check_ok(on.download(from, bytes));
  return bytes;
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

} // namespace

// One conformance suite for every device. Those that are not here are skipped, with the reason.
BOOST_AUTO_TEST_SUITE(each_device)

BOOST_TEST_DECORATOR(*boost::unit_test::precondition(device_is_here))
BOOST_AUTO_TEST_CASE_TEMPLATE(pieces_arrive_aligned_and_whole, Device, devices_under_test) {
  const auto on = Device::make();
  const std::vector<std::vector<std::byte>> pieces{
      pattern(1, 1), {}, pattern(255, 2), pattern(256, 3), pattern(100'001, 4)};
  const auto upload = sent(*on, pieces);
  check_ok(on->wait(device_lane::compute, upload.ready));
  BOOST_TEST_REQUIRE(upload.offsets.size() == pieces.size());
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    BOOST_TEST(upload.offsets[i] % device_alignment == 0U);
    BOOST_TEST(
        (read_back(*on, upload.memory.data() + upload.offsets[i], pieces[i].size()) == pieces[i]));
  }
  BOOST_TEST(reinterpret_cast<std::uintptr_t>(upload.memory.data()) % device_alignment == 0U);
}

// The staging memory that a piece leaves from is not the caller's.
BOOST_TEST_DECORATOR(*boost::unit_test::precondition(device_is_here))
BOOST_AUTO_TEST_CASE_TEMPLATE(what_was_sent_may_change_at_once, Device, devices_under_test) {
  const auto on = Device::make();
  std::vector<std::vector<std::byte>> pieces{pattern(1U << 20U, 1)};
  const auto want = pieces[0];
  const auto upload = sent(*on, pieces);
  pieces[0].assign(pieces[0].size(), std::byte{0});
  check_ok(on->wait(device_lane::compute, upload.ready));
  BOOST_TEST((read_back(*on, upload.memory.data(), want.size()) == want));
}

// More than there are staging slots: one that was written again before its bytes had left would
// show the bytes of a later upload.
BOOST_TEST_DECORATOR(*boost::unit_test::precondition(device_is_here))
BOOST_AUTO_TEST_CASE_TEMPLATE(uploads_in_a_row_keep_their_bytes, Device, devices_under_test) {
  const auto on = Device::make();
  constexpr std::uint32_t count = 8;
  constexpr std::size_t size = 1U << 20U;
  std::vector<device_upload> uploads;
  for (std::uint32_t i = 0; i < count; ++i)
    uploads.push_back(sent(*on, {pattern(size, i)}));
  check_ok(on->wait(device_lane::compute, uploads.back().ready));
  for (std::uint32_t i = 0; i < count; ++i)
    BOOST_TEST((read_back(*on, uploads[i].memory.data(), size) == pattern(size, i)));
}

// What is read was sent, though the next upload stands between.
BOOST_TEST_DECORATOR(*boost::unit_test::precondition(device_is_here))
BOOST_AUTO_TEST_CASE_TEMPLATE(uploads_that_overtake_readers_do_not_mix, Device,
                              devices_under_test) {
  const auto on = Device::make();
  constexpr std::uint32_t rounds = 24;
  const auto size = [](std::uint32_t i) { return (1U << 18U) + 4096U * (i % 5); };
  auto next = sent(*on, {pattern(size(0), 0)});
  for (std::uint32_t i = 0; i < rounds; ++i) {
    const auto now = std::move(next);
    next = sent(*on, {pattern(size(i + 1), i + 1)});
    check_ok(on->wait(device_lane::compute, now.ready));
    BOOST_TEST((read_back(*on, now.memory.data(), size(i)) == pattern(size(i), i)));
  }
  check_ok(on->synchronize());
}

BOOST_TEST_DECORATOR(*boost::unit_test::precondition(device_is_here))
BOOST_AUTO_TEST_CASE_TEMPLATE(memory_is_used_again_and_counted_once, Device, devices_under_test) {
  const auto on = Device::make();
  const auto *const first = must(on->allocate(100'000)).data();
  const auto held = on->held().memory;
  BOOST_TEST(held >= 100'000U);
  for (int i = 0; i < 3; ++i)
    BOOST_TEST(must(on->allocate(100'000)).data() == first);
  BOOST_TEST(on->held().memory == held);
  const auto one = must(on->allocate(100'000));
  const auto other = must(on->allocate(100'000));
  BOOST_TEST(one.data() != other.data());
  BOOST_TEST(on->held().memory == 2 * held);
}

BOOST_TEST_DECORATOR(*boost::unit_test::precondition(device_is_here))
BOOST_AUTO_TEST_CASE_TEMPLATE(what_double_buffering_holds_does_not_grow, Device,
                              devices_under_test) {
  const auto on = Device::make();
  const std::vector<std::vector<std::byte>> pieces{pattern(300'000, 1)};
  std::uint64_t memory = 0;
  std::uint64_t staging = 0;
  auto next = sent(*on, pieces);
  for (int i = 0; i < 10; ++i) {
    const auto now = std::move(next);
    next = sent(*on, pieces);
    check_ok(on->wait(device_lane::compute, now.ready));
    if (i == 2) {
      memory = on->held().memory;
      staging = on->held().staging;
    }
  }
  BOOST_TEST(memory >= 600'000U);
  BOOST_TEST(on->held().memory == memory);
  BOOST_TEST(on->held().staging == staging);
}

BOOST_TEST_DECORATOR(*boost::unit_test::precondition(device_is_here))
BOOST_AUTO_TEST_CASE_TEMPLATE(memory_and_events_may_outlive_the_device, Device,
                              devices_under_test) {
  auto on = Device::make();
  const auto scratch = must(on->allocate(10'000));
  const auto upload = sent(*on, {pattern(10'000, 1)});
  const auto moment = must(on->record(device_lane::compute));
  on.reset();
  BOOST_TEST(scratch.size() == 10'000U);
  BOOST_TEST(upload.memory.size() >= 10'000U);
}

BOOST_TEST_DECORATOR(*boost::unit_test::precondition(device_is_here))
BOOST_AUTO_TEST_CASE_TEMPLATE(a_recorded_moment_can_be_waited_for_in_either_lane, Device,
                              devices_under_test) {
  const auto on = Device::make();
  for (const auto from : {device_lane::copy, device_lane::compute})
    for (const auto in : {device_lane::copy, device_lane::compute})
      check_ok(on->wait(in, must(on->record(from))));
  check_ok(on->wait(device_lane::copy, device_event()));
  check_ok(on->synchronize());
}

BOOST_TEST_DECORATOR(*boost::unit_test::precondition(device_is_here))
BOOST_AUTO_TEST_CASE_TEMPLATE(memory_that_cannot_be_had_is_an_error_that_names_the_call, Device,
                              devices_under_test) {
  const auto on = Device::make();
  const auto got = on->allocate(std::size_t{1} << 50U);
  BOOST_TEST_REQUIRE(!got.has_value());
  BOOST_TEST((got.error().code == errc::io));
  BOOST_TEST(got.error().message.starts_with(Device::allocator), got.error().message);
  BOOST_TEST(contains(got.error().message, std::to_string(std::size_t{1} << 50U)),
             got.error().message);
  BOOST_TEST(must(on->allocate(1000)).size() == 1000U); // the device can still be used
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(device_names)

BOOST_AUTO_TEST_CASE(the_host_is_the_first_device) {
  const auto all = devices();
  BOOST_TEST_REQUIRE(!all.empty());
  BOOST_TEST(all.front().name == "host");
  for (const auto &one : all)
    BOOST_TEST(make_device(one.name).has_value(), one.name);
}

BOOST_AUTO_TEST_CASE(a_name_that_no_device_has_is_refused_with_those_that_are_known) {
  for (const auto *name : {"", "Host", "gpu", "cuda:", "cuda:x", "cuda:1x", "cuda:-1", "cuda 1"}) {
    const auto made = make_device(name);
    BOOST_TEST_REQUIRE(!made.has_value(), name);
    BOOST_TEST((made.error().code == errc::bad_argument), made.error().message);
    BOOST_TEST(contains(made.error().message, "cuda:N"), made.error().message);
  }
}

// Either this build has no CUDA, or the call that found no driver or no GPU says so.
BOOST_AUTO_TEST_CASE(a_gpu_that_is_not_here_is_an_error_that_says_what_is_missing) {
  const auto made = make_device("cuda:99");
  BOOST_TEST_REQUIRE(!made.has_value());
  const auto &[code, message] = made.error();
  BOOST_TEST_MESSAGE(message);
  if (code == errc::unsupported)
    BOOST_TEST(contains(message, "-DMILLRACE_CUDA=ON"), message);
  else if (code == errc::not_found)
    BOOST_TEST(message.starts_with("cudaGetDeviceCount: "), message);
  else
    BOOST_TEST((code == errc::bad_argument && contains(message, "'cuda:99'")), message);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(block_pools)

namespace {

struct counted_block {
  std::size_t bytes;
  std::size_t size() const { return bytes; }
};

} // namespace

BOOST_AUTO_TEST_CASE(a_block_serves_what_is_at_most_half_smaller) {
  block_pool<counted_block> pool;
  std::size_t made = 0;
  const auto make = [&](std::size_t size) -> result<counted_block> {
    ++made;
    return counted_block{size};
  };
  pool.give_back(must(pool.take(100'000, make)));
  const auto size = must(pool.take(100'000, make)).size();
  BOOST_TEST(made == 1U);
  BOOST_TEST(size >= 100'000U);
  BOOST_TEST(size <= 112'500U); // an eighth
  pool.give_back({size});
  pool.give_back(must(pool.take(60'000, make)));
  BOOST_TEST(made == 1U);
  (void)must(pool.take(30'000, make)); // it would waste more than half of the block
  BOOST_TEST(made == 2U);
  (void)must(pool.take(200'000, make));
  BOOST_TEST(made == 3U);
  BOOST_TEST(pool.held() >= 330'000U);
}

BOOST_AUTO_TEST_CASE(what_could_not_be_made_is_not_counted) {
  block_pool<counted_block> pool;
  const auto got = pool.take(
      1, [](std::size_t) -> result<counted_block> { return fail(errc::io, "nothing left"); });
  BOOST_TEST(!got.has_value());
  BOOST_TEST(pool.held() == 0U);
}

BOOST_AUTO_TEST_SUITE_END()
