// SPDX-License-Identifier: Apache-2.0
#include "actors/trainer/rank_standing.hpp"

#include <map>
#include <random>
#include <set>

#include <boost/test/unit_test.hpp>

namespace millrace {
namespace {

digest128 digest_of(std::uint64_t value) {
  digest128 out;
  for (std::size_t i = 0; i < 8; ++i)
    out.bytes[i] = static_cast<std::uint8_t>(value >> (8 * i));
  return out;
}

planner_claim claim(std::uint64_t epoch, std::uint64_t folder = 1) {
  return {digest_of(folder), epoch};
}

BOOST_AUTO_TEST_SUITE(rank_standings)

BOOST_AUTO_TEST_CASE(a_generation_binds_the_rank_to_its_folder) {
  rank_standing rank;
  BOOST_TEST(rank.obey(claim(3)).value());
  BOOST_TEST(!rank.obey(claim(3)).value());
  BOOST_TEST(rank.obey(claim(5)).value());
  BOOST_TEST(!rank.obey(claim(4)));
  rank.load(0);
  BOOST_REQUIRE(rank.begin({1, 1}).value());
  BOOST_TEST(!rank.obey(claim(9, 2)));
  BOOST_TEST((rank.leader() == claim(5)));
}

BOOST_AUTO_TEST_CASE(without_a_generation_whoever_says_hello_last_leads) {
  rank_standing rank;
  BOOST_TEST(rank.obey(claim(9, 2)).value());
  BOOST_TEST(rank.obey(claim(1)).value());
  BOOST_TEST((rank.leader() == claim(1)));
  rank.load(4);
  BOOST_TEST(rank.obey(claim(8, 2)).value());
  BOOST_TEST(!rank.loaded()); // that was the other run's
}

BOOST_AUTO_TEST_CASE(work_of_a_higher_epoch_fences_lower_ones_and_that_of_another_folder_does_not) {
  rank_standing rank;
  BOOST_TEST(rank.meet(claim(5)));
  BOOST_TEST(!rank.obey(claim(4)));
  BOOST_TEST(!rank.meet(claim(9, 2)));
  BOOST_TEST((rank.leader() == claim(5)));
  BOOST_TEST(rank.meet(claim(6)));
}

BOOST_AUTO_TEST_CASE(a_step_that_another_job_has_trained_is_kept_until_this_one_has_too) {
  rank_standing rank;
  BOOST_REQUIRE(rank.obey(claim(1)));
  rank.load(4);
  BOOST_REQUIRE(rank.begin({2, 5}).value());
  BOOST_REQUIRE(rank.commit({5, digest_of(5), claim(1)}, true).value());
  BOOST_REQUIRE(rank.commit({6, digest_of(6), claim(1)}, true).value());
  rank.train({5, 0, {}});
  rank.record({6, 4}); // of the job before
  const auto said = rank.state(0);
  BOOST_TEST(said.trained_to == 5U);
  BOOST_REQUIRE_EQUAL(said.committed.size(), 1);
  BOOST_TEST(said.committed[0].step == 6U);
}

// Whatever comes in whatever order: a committed step keeps its digest, steps follow each other
// without gaps, and what is told is what is committed and not recorded.
BOOST_AUTO_TEST_CASE(random_words_never_replace_a_committed_step) {
  const auto seed = std::random_device{}();
  BOOST_TEST_MESSAGE("seed " << seed);
  std::minstd_rand random(seed);
  rank_standing rank;
  BOOST_REQUIRE(rank.obey(claim(1)));
  rank.load(4);
  BOOST_REQUIRE(rank.begin({1, 5}).value());
  std::map<std::uint64_t, digest128> committed;
  std::set<std::uint64_t> trained;
  std::uint64_t recorded = 4;
  for (int i = 0; i < 3'000; ++i) {
    const std::uint64_t step = std::max<std::uint64_t>(recorded, 2) + random() % 6;
    const auto digest = digest_of(random() % 2);
    const auto last = 4 + committed.size();
    if (const auto what = random() % 8; what < 5) {
      const bool staged = random() % 4 != 0;
      const auto done = rank.commit({step, digest, claim(1)}, staged);
      if (step == last + 1 && staged) {
        BOOST_REQUIRE(done.value());
        committed[step] = digest;
      } else if (step <= last && (step <= recorded || committed.at(step) == digest)) {
        BOOST_REQUIRE(!done.value());
      } else {
        BOOST_REQUIRE(!done);
        BOOST_REQUIRE((done.error().code == errc::conflict));
      }
    } else if (what < 7 && committed.contains(step) && step > recorded) {
      rank.train({step, 0, {static_cast<std::int64_t>(step), 0, 0}});
      trained.insert(step);
    } else if (what == 7 && trained.contains(recorded + 1)) {
      rank.record({++recorded, 0});
    }
    const auto said = rank.state(0);
    BOOST_REQUIRE_EQUAL(said.next, 5 + committed.size());
    BOOST_REQUIRE_EQUAL(said.committed.size(), 4 + committed.size() - recorded);
    for (const auto &[number, value] : said.committed)
      BOOST_REQUIRE((value == committed.at(number)));
    BOOST_REQUIRE_EQUAL(said.trained.size(),
                        std::ranges::distance(trained.upper_bound(recorded), trained.end()));
  }
  BOOST_TEST(committed.size() > 20U);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
} // namespace millrace
