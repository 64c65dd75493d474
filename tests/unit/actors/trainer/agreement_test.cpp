// SPDX-License-Identifier: Apache-2.0
#include "actors/trainer/agreement.hpp"

#include <chrono>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "runtime/collective/local.hpp"
#include "tests/support/ranks.hpp"

using namespace millrace;
using namespace std::chrono_literals;
using millrace::test::on_all_ranks;

namespace {

struct handed {
  std::uint64_t step = 12;
  std::uint8_t digest = 1;
  std::uint64_t micro_batches = 3;
};

std::vector<status> agreed(const std::vector<handed> &each) {
  auto ranks = make_local_collective(static_cast<int>(each.size()), 10s);
  return on_all_ranks(ranks, [&](collective &mine) {
    const auto &own = each[static_cast<std::size_t>(mine.rank())];
    digest128 digest;
    digest.bytes.fill(own.digest);
    return agree(mine, own.step, digest, own.micro_batches);
  });
}

/// The one message that all ranks return; empty if they do not return the same conflict.
std::string common_conflict(const std::vector<status> &answers) {
  for (const auto &answer : answers)
    if (answer || answer.error().code != errc::conflict ||
        answer.error().message != answers[0].error().message)
      return {};
  return answers[0].error().message;
}

bool contains(const std::string &text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

} // namespace

BOOST_AUTO_TEST_SUITE(agreement)

BOOST_AUTO_TEST_CASE(ranks_that_were_handed_the_same_step_agree) {
  for (const auto &answer : agreed({{}, {}, {}}))
    BOOST_TEST(answer.has_value());
}

BOOST_AUTO_TEST_CASE(ranks_with_3_and_4_micro_batches_all_stop_with_the_same_message) {
  const auto message = common_conflict(agreed({{.micro_batches = 3}, {.micro_batches = 4}}));
  BOOST_TEST(contains(message, "rank 0: step 12, "), message);
  BOOST_TEST(contains(message, "3 micro batches; rank 1: step 12, "), message);
  BOOST_TEST(contains(message, "4 micro batches"), message);
}

BOOST_AUTO_TEST_CASE(another_step_digest_on_the_last_rank_is_found) {
  const auto message = common_conflict(agreed({{}, {}, {.digest = 2}}));
  BOOST_TEST(contains(message, "rank 2: step 12, digest 0202020202020202"), message);
}

BOOST_AUTO_TEST_CASE(another_step_is_found) {
  const auto message = common_conflict(agreed({{.step = 12}, {.step = 13}}));
  BOOST_TEST(contains(message, "rank 1: step 13"), message);
}

BOOST_AUTO_TEST_SUITE_END()
