// SPDX-License-Identifier: Apache-2.0
#include "runtime/collective/nccl.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "runtime/device/device.hpp"

using namespace millrace;
using namespace std::chrono_literals;

namespace {

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

/// A precondition: one GPU, which is enough for a job of one rank.
boost::test_tools::assertion_result nccl_and_a_gpu_are_here(boost::unit_test::test_unit_id) {
  boost::test_tools::assertion_result answer(true);
  if (const auto here = nccl_is_here(); !here) {
    answer = false;
    answer.message() << here.error().message;
  }
  return answer;
}

} // namespace

// What more than one rank does is in the suite of all collectives.
BOOST_AUTO_TEST_SUITE(nccl_joining)

BOOST_AUTO_TEST_CASE(without_nccl_or_a_gpu_joining_says_what_is_missing) {
  const auto here = nccl_is_here();
  if (here)
    return; // both are here
  const auto &[code, message] = here.error();
  BOOST_TEST_MESSAGE(message);
  if (code == errc::unsupported)
    BOOST_TEST((contains(message, "-DMILLRACE_NCCL=ON") || contains(message, "libnccl.so.2")),
               message);
  else
    BOOST_TEST((code == errc::not_found && message.starts_with("cudaGetDeviceCount: ")), message);
  const auto joined = join_nccl({.rank = 0, .size = 2, .join_deadline = 600s}, make_gloo_store());
  BOOST_TEST_REQUIRE(!joined.has_value());
  BOOST_TEST((joined.error().code == code));
  BOOST_TEST(joined.error().message == message);
}

BOOST_TEST_DECORATOR(*boost::unit_test::precondition(nccl_and_a_gpu_are_here))
BOOST_AUTO_TEST_CASE(a_job_of_one_rank_over_nccl_gathers_its_own_bytes_of_any_size) {
  const auto mine = join_nccl({.rank = 0, .size = 1, .prefix = "generation 1"}, make_gloo_store());
  BOOST_REQUIRE_MESSAGE(mine, mine.error().message);
  for (const std::size_t size : {0U, 1U, 7U, 4096U, 1U << 22U, 100U}) {
    std::vector<std::byte> bytes(size, std::byte(size % 251 + 1)), all(size);
    const auto done = (*mine)->all_gather({"bytes", 1}, bytes, all);
    BOOST_REQUIRE_MESSAGE(done, done.error().message);
    BOOST_TEST((all == bytes));
  }
}

BOOST_TEST_DECORATOR(*boost::unit_test::precondition(nccl_and_a_gpu_are_here))
BOOST_AUTO_TEST_CASE(generations_that_share_a_store_do_not_meet_over_nccl) {
  const auto store = make_gloo_store();
  for (const auto *prefix : {"generation 1", "generation 2"}) {
    const auto mine = join_nccl({.rank = 0, .size = 1, .prefix = prefix}, store);
    BOOST_REQUIRE_MESSAGE(mine, mine.error().message);
    std::array<std::int64_t, 1> value{3};
    BOOST_TEST((*mine)
                   ->all_reduce({"values", 1}, std::span<std::int64_t>(value), reduction::sum)
                   .has_value());
    BOOST_TEST(value[0] == 3);
  }
}

BOOST_TEST_DECORATOR(*boost::unit_test::precondition(nccl_and_a_gpu_are_here))
BOOST_AUTO_TEST_CASE(a_rank_that_never_joins_is_a_time_out_over_nccl) {
  for (const int rank : {0, 1}) {
    const auto joined =
        join_nccl({.rank = rank, .size = 2, .join_deadline = 500ms}, make_gloo_store());
    BOOST_TEST_REQUIRE(!joined.has_value());
    BOOST_TEST((joined.error().code == errc::timed_out), joined.error().message);
    BOOST_TEST(contains(joined.error().message, fmt::format("rank {} of 2", rank)),
               joined.error().message);
  }
}

BOOST_TEST_DECORATOR(*boost::unit_test::precondition(nccl_and_a_gpu_are_here))
BOOST_AUTO_TEST_CASE(after_abort_every_call_over_nccl_fails_with_its_reason) {
  const auto mine = join_nccl({.rank = 0, .size = 1}, make_gloo_store());
  BOOST_REQUIRE_MESSAGE(mine, mine.error().message);
  (*mine)->abort("the run stops");
  (*mine)->abort("another reason");
  for (int i = 0; i < 2; ++i) {
    const auto done = (*mine)->all_gather({"token counts", 5}, {}, {});
    BOOST_TEST_REQUIRE(!done.has_value());
    BOOST_TEST((done.error().code == errc::peer_lost));
    BOOST_TEST(contains(done.error().message, "rank 0 aborted: the run stops"),
               done.error().message);
  }
}

BOOST_AUTO_TEST_SUITE_END()
