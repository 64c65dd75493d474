// SPDX-License-Identifier: Apache-2.0
#include "actors/planner/empty_watch.hpp"

#include <boost/test/unit_test.hpp>

#include "tests/support/groups.hpp"

namespace millrace::test {
namespace {

struct watch_fixture {
  empty_watch watch{{.traces = 4}, 2, 100};

  /// A group of episodes that all ended so.
  static void add(empty_watch &to, episode_state state, std::size_t episodes, bool tokens = true) {
    std::vector<frame_data> all;
    for (std::size_t i = 0; i < episodes; ++i) {
      all.push_back(episode_of(fmt::format("{}", i), 1, {prompt(-1, 3), turn(0, {1})}));
      if (!tokens) {
        all.back().nodes.clear();
        all.back().finish->traces.clear();
      }
    }
    log_group entry;
    entry.states.assign(episodes, static_cast<std::uint8_t>(state));
    to.add(*header_of(all), entry);
  }
};

BOOST_FIXTURE_TEST_SUITE(empty_watch_suite, watch_fixture)

BOOST_AUTO_TEST_CASE(after_so_many_batches_worth_it_names_the_states_most_frequent_first) {
  add(watch, episode_state::errored, 3);
  BOOST_TEST(!watch.verdict());
  add(watch, episode_state::gated, 4);
  BOOST_TEST(!watch.verdict());
  add(watch, episode_state::errored, 1, false); // without a trace it counts as one
  BOOST_REQUIRE(watch.verdict());
  BOOST_TEST(watch.verdict()->message ==
             "nothing to train in 8 traces, 2 batches' worth (planner.max_empty_batches); episodes "
             "since the start: gated 4, errored 4");
}

BOOST_AUTO_TEST_CASE(a_sample_begins_the_count_anew_and_a_step_that_of_the_states) {
  add(watch, episode_state::gated, 7);
  watch.cut(3);
  add(watch, episode_state::errored, 7);
  BOOST_TEST(!watch.verdict());
  watch.found();
  add(watch, episode_state::pruned, 8);
  BOOST_TEST(watch.verdict()->message.ends_with("episodes since step 3: pruned 8, errored 7"));
}

BOOST_AUTO_TEST_CASE(a_sample_that_could_not_be_planned_was_none) {
  add(watch, episode_state::gated, 4);
  watch.found();
  add(watch, episode_state::rejected, 4);
  BOOST_TEST(!watch.verdict());
  watch.lost();
  BOOST_TEST(watch.verdict().has_value());
}

BOOST_AUTO_TEST_CASE(it_is_off_by_default) {
  empty_watch off({.traces = 4}, planner_config{}.max_empty_batches, 100);
  add(off, episode_state::gated, 100);
  BOOST_TEST(!off.verdict());
}

BOOST_AUTO_TEST_CASE(where_tokens_make_a_batch_an_episode_without_any_counts_as_a_whole_sequence) {
  empty_watch tokens({.tokens = 200}, 1, 100);
  add(tokens, episode_state::gated, 10); // 4 tokens each
  add(tokens, episode_state::errored, 1, false);
  BOOST_TEST(!tokens.verdict());
  add(tokens, episode_state::errored, 1, false);
  BOOST_TEST(tokens.verdict()->message.starts_with("nothing to train in 240 tokens"));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
} // namespace millrace::test
