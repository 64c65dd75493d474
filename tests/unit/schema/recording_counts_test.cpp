// SPDX-License-Identifier: Apache-2.0
#include "schema/recording_counts.hpp"

#include "tests/support/episodes.hpp"

#include <boost/test/unit_test.hpp>

namespace millrace {
namespace {

BOOST_AUTO_TEST_CASE(loose_frames_and_sealed_episodes_count_alike) {
  recording_tally loose;
  for (const auto &data : test::some_episode_in_two())
    loose.add(test::parsed(data));
  recording_tally sealed;
  sealed.add(test::sealed(test::some_episode_in_two()));
  for (const auto &counts : {loose.counts(), sealed.counts()}) {
    BOOST_TEST(counts.episodes == 1U);
    BOOST_TEST(counts.nodes == 2U);
    BOOST_TEST(counts.tokens == 8U);
    BOOST_TEST(counts.groups.at(0).ok == 1U);
  }
}

BOOST_AUTO_TEST_CASE(an_episode_without_its_end_is_unfinished) {
  recording_tally tally;
  tally.add(test::parsed(test::some_episode_in_two()[0]));
  BOOST_TEST(tally.counts().episodes == 0U);
  BOOST_TEST(tally.counts().tokens == 0U);
  BOOST_TEST(tally.counts().unfinished == 1U);
}

BOOST_AUTO_TEST_CASE(a_repeated_episode_counts_once) {
  recording_tally tally;
  BOOST_TEST(tally.add(test::sealed({test::some_episode()})));
  BOOST_TEST(!tally.add(test::sealed({test::some_episode()})));
  BOOST_TEST(!tally.add(test::parsed(test::some_episode())));
  BOOST_TEST(tally.counts().episodes == 1U);
  BOOST_TEST(tally.counts().repeats == 2U);
}

BOOST_AUTO_TEST_CASE(a_later_attempt_replaces_an_earlier_one) {
  recording_tally tally;
  auto failed = test::some_episode();
  failed.finish->status = wire::EpisodeStatus::Errored;
  auto again = test::some_episode();
  again.attempt = 1;
  again.nodes.pop_back();
  count_whole_episode(again);
  tally.add(test::sealed({failed}));
  tally.add(test::sealed({again}));
  BOOST_TEST(!tally.add(test::sealed({failed}))); // late
  const auto counts = tally.counts();
  BOOST_TEST(counts.groups.at(0).ok == 1U);
  BOOST_TEST(counts.groups.at(0).errored == 0U);
  BOOST_TEST(counts.tokens == 3U);
}

BOOST_AUTO_TEST_CASE(groups_of_two_environments_do_not_mix) {
  recording_tally tally;
  for (const auto *env : {"a", "b"})
    for (const auto *id : {"e0", "e1"})
      tally.add(test::sealed({test::some_episode(id, test::some_key(env))}));
  const auto counts = tally.counts();
  BOOST_REQUIRE_EQUAL(counts.groups.size(), 2U);
  BOOST_TEST(counts.groups[0].episodes() == 2U);
  BOOST_TEST(counts.groups[1].key.env == "b");
}

BOOST_AUTO_TEST_CASE(group_sizes_that_do_not_agree_are_told) {
  recording_tally tally;
  tally.add(test::sealed({test::some_episode("e0")}));
  auto other = test::some_episode("e1");
  other.group_size = 8;
  tally.add(test::sealed({other}));
  BOOST_TEST(tally.counts().groups.at(0).size == 2U);
  BOOST_REQUIRE_EQUAL(tally.counts().conflicts.size(), 1U);
}

} // namespace
} // namespace millrace
