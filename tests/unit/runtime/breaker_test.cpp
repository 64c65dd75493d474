// SPDX-License-Identifier: Apache-2.0
#include "runtime/collective/breaker.hpp"

#include <array>
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "runtime/collective/local.hpp"

namespace millrace {
namespace {

using namespace std::chrono_literals;

/// Rank 0 of two; the other one never comes.
std::shared_ptr<collective> lonely(std::vector<std::unique_ptr<collective>> &others) {
  others = make_local_collective(2, 600s);
  return std::move(others[0]);
}

status wait_for_the_other(collective &mine) {
  std::array<std::int64_t, 1> value{1};
  return mine.all_reduce({"values", 7}, std::span(value), reduction::sum);
}

BOOST_AUTO_TEST_SUITE(breakers)

BOOST_AUTO_TEST_CASE(a_wait_that_is_under_way_or_about_to_begin_ends_with_the_reason) {
  std::vector<std::unique_ptr<collective>> others;
  const auto mine = lonely(others);
  collective_breaker breaker;
  breaker.watch(mine);
  auto waits = std::async(std::launch::async, [&] { return wait_for_the_other(*mine); });
  BOOST_TEST(!breaker.is_broken());
  breaker.break_all("a disk is full");
  const auto ended = waits.get();
  BOOST_REQUIRE(!ended);
  BOOST_TEST((ended.error().code == errc::peer_lost));
  BOOST_TEST(ended.error().message.find("a disk is full") != std::string::npos,
             ended.error().message);
  BOOST_TEST(breaker.is_broken());
}

BOOST_AUTO_TEST_CASE(who_comes_after_the_end_ends_at_once) {
  collective_breaker breaker;
  breaker.break_all("a test");
  std::vector<std::unique_ptr<collective>> others;
  const auto mine = lonely(others);
  breaker.watch(mine);
  BOOST_TEST(!wait_for_the_other(*mine));
  std::string heard;
  breaker.on_break([&](std::string_view reason) { heard = reason; });
  BOOST_TEST(heard == "a test");
}

BOOST_AUTO_TEST_CASE(one_that_is_gone_is_let_alone_and_all_hear_the_first_reason) {
  collective_breaker breaker;
  std::vector<std::unique_ptr<collective>> others;
  breaker.watch(lonely(others));
  std::vector<std::string> heard;
  breaker.on_break([&](std::string_view reason) { heard.emplace_back(reason); });
  breaker.break_all("first");
  breaker.break_all("second");
  BOOST_TEST((heard == std::vector<std::string>{"first", "first"}));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
} // namespace millrace
