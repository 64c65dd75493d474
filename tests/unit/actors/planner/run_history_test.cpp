// SPDX-License-Identifier: Apache-2.0
#include "actors/planner/run_history.hpp"

#include <boost/test/unit_test.hpp>

namespace millrace::test {
namespace {

log_group group(std::uint64_t ordinal, episode_state state = episode_state::trained) {
  log_group out;
  out.ordinal = ordinal;
  out.key = {"run", "env", std::to_string(ordinal), "0"};
  out.states = {static_cast<std::uint8_t>(state), static_cast<std::uint8_t>(episode_state::pruned)};
  out.samples = {{static_cast<std::uint8_t>(state), 1, 10}};
  return out;
}

/// Step n takes group n - 1.
log_commit step(std::uint64_t number) {
  log_commit out;
  out.step = number;
  out.digest.bytes[0] = static_cast<std::uint8_t>(number);
  out.bins = {{0, 0, out.digest, 0, {}}};
  out.groups = {group(number - 1)};
  out.annotations = {{}};
  return out;
}

struct history_fixture {
  run_history log{step_keep::durable};

  void use(step_keep keep) { log = run_history(keep); }
  void start(std::uint64_t number) {
    BOOST_REQUIRE(log.apply(log_open{"run", {}, number, "1", "", "a source", 1}));
  }
  void commit(std::uint64_t first, std::uint64_t last) {
    for (auto number = first; number <= last; ++number)
      BOOST_REQUIRE(log.apply(step(number)));
  }
  void train(std::uint64_t first, std::uint64_t last) {
    for (auto number = first; number <= last; ++number)
      BOOST_REQUIRE(log.apply(log_trained{number, 0, 0, 0}));
  }
  std::uint64_t episodes(episode_state state) const { return log.entries()[state]; }
  static std::vector<std::uint64_t> ordinals(const std::vector<group_ref> &refs) {
    std::vector<std::uint64_t> out;
    for (auto ref : refs)
      out.push_back(ref.ordinal);
    return out;
  }
};

using numbers = std::vector<std::uint64_t>;

BOOST_FIXTURE_TEST_SUITE(run_history_suite, history_fixture)

BOOST_AUTO_TEST_CASE(the_epoch_rises_with_every_start_and_every_generation) {
  start(1);
  BOOST_TEST(log.epoch() == 1U);
  BOOST_REQUIRE(log.apply(log_generation{1, 1}));
  BOOST_TEST(log.epoch() == 2U);
  start(2);
  BOOST_TEST(log.epoch() == 3U);
}

BOOST_AUTO_TEST_CASE(a_committed_step_counts_as_held_until_it_is_trained) {
  commit(1, 2);
  train(1, 1);
  BOOST_TEST(episodes(episode_state::trained) == 1U);
  BOOST_TEST(episodes(episode_state::held) == 1U);
  BOOST_TEST(episodes(episode_state::pruned) == 2U);
  train(2, 2);
  BOOST_TEST(episodes(episode_state::trained) == 2U);
}

BOOST_AUTO_TEST_CASE(a_step_can_be_made_again_until_it_is_durable) {
  commit(1, 3);
  train(1, 3);
  BOOST_REQUIRE(log.commit(1) != nullptr);
  BOOST_TEST(!log.is_settled({0, 0}));
  BOOST_REQUIRE(log.apply(log_durable{2}));
  BOOST_TEST(log.commit(2) == nullptr);
  BOOST_TEST(log.commit(3) != nullptr);
  BOOST_TEST(log.is_settled({1, 0}));
  BOOST_TEST(!log.is_settled({2, 0}));
  BOOST_TEST(ordinals(log.take_final()) == (numbers{0, 1}), boost::test_tools::per_element());
  BOOST_TEST(log.take_final().empty());
  BOOST_TEST(episodes(episode_state::trained) == 3U);
}

BOOST_AUTO_TEST_CASE(where_trained_steps_are_not_kept_their_groups_are_settled_with_them) {
  use(step_keep::trained);
  commit(1, 2);
  train(1, 1);
  BOOST_TEST(log.commit(1) == nullptr);
  BOOST_TEST(log.is_settled({0, 0}));
  BOOST_TEST(!log.is_settled({1, 0}));
}

BOOST_AUTO_TEST_CASE(rolling_back_names_what_was_trained_and_frees_what_was_not) {
  use(step_keep::trained);
  commit(1, 5);
  train(1, 4);
  BOOST_REQUIRE(log.apply(log_durable{2}));
  log.take_final();
  BOOST_REQUIRE(log.apply(log_rolled_back{3, 5, 4}));
  BOOST_TEST(log.committed() == 2U);
  BOOST_TEST(log.trained() == 2U);
  BOOST_TEST(episodes(episode_state::trained) == 2U);
  BOOST_TEST(episodes(episode_state::rolled_back) == 2U);
  BOOST_TEST(ordinals(log.take_freed()) == numbers{4}, boost::test_tools::per_element());
  BOOST_TEST(!log.has({4, 0}));
  BOOST_TEST(log.has({3, 0}));
  BOOST_TEST(log.is_settled({3, 0}));
  auto again = step(3);
  again.groups = {group(4)};
  BOOST_TEST(log.apply(again).has_value());
  BOOST_TEST(log.reports().size() == 3U);
}

BOOST_AUTO_TEST_CASE(the_grid_hash_is_that_of_the_steps_that_count) {
  use(step_keep::trained);
  commit(1, 2);
  const auto two = log.grid_hash();
  commit(3, 3);
  BOOST_TEST((log.grid_hash() != two));
  train(1, 2);
  BOOST_REQUIRE(log.apply(log_durable{2}));
  BOOST_REQUIRE(log.apply(log_rolled_back{3, 3, 2}));
  BOOST_TEST((log.grid_hash() == two));
}

BOOST_AUTO_TEST_CASE(a_group_that_ends_outside_a_step_is_settled_at_once) {
  BOOST_REQUIRE(log.apply(log_settled{{group(0, episode_state::gated)}}));
  BOOST_TEST(log.is_settled({0, 0}));
  BOOST_TEST(episodes(episode_state::gated) == 1U);
}

BOOST_AUTO_TEST_CASE(answers_of_a_key_follow_each_other) {
  const log_scored first{0, 0, "env/agent", 1, {}, {7}, {}};
  const log_scored second{1, 0, "env/agent", 2, {7}, {8}, {}};
  BOOST_TEST(!log.apply(second).has_value());
  BOOST_REQUIRE(log.apply(first));
  BOOST_TEST(!log.apply(first).has_value());
  BOOST_TEST(!log.apply(log_scored{1, 0, "env/agent", 2, {6}, {8}, {}}).has_value());
  BOOST_REQUIRE(log.apply(second));
  BOOST_TEST(log.scored("env/agent")->after == std::vector<std::uint8_t>{8},
             boost::test_tools::per_element());
  BOOST_TEST(log.scored("env/other") == nullptr);
}

/// What does not follow from what is there, by what is said of it.
BOOST_AUTO_TEST_CASE(records_that_do_not_follow_are_refused_and_change_nothing) {
  start(1);
  commit(1, 2);
  train(1, 1);
  const std::vector<std::pair<log_record, std::string_view>> wrong{
      {log_open{"run", {}, 3, "1", "", "a source", 1}, "start 3 follows start 1"},
      {log_open{"run", {{1}}, 2, "1", "", "a source", 1}, "of folder"},
      {log_generation{2, 1}, "generation 2 follows 0"},
      {step(4), "step 4 is committed after step 2"},
      {log_trained{3, 0, 0, 0}, "step 3 is trained after step 1"},
      {log_durable{2}, "trained are 1"},
      {log_rolled_back{2, 2, 1}, "are rolled back"},
      {log_settled{{group(1)}}, "has ended before"}};
  for (const auto &[record, text] : wrong) {
    const auto applied = log.apply(record);
    BOOST_REQUIRE(!applied);
    BOOST_TEST((applied.error().code == errc::damaged));
    BOOST_TEST(applied.error().message.find(text) != std::string::npos, applied.error().message);
  }
  auto taken = step(3);
  taken.groups = {group(0)};
  BOOST_TEST(!log.apply(taken).has_value());
  BOOST_TEST(log.committed() == 2U);
  BOOST_TEST(log.entries().total() == 4U);
}

BOOST_AUTO_TEST_CASE(a_state_that_only_a_later_version_knows_is_refused) {
  auto record = log_settled{{group(0)}};
  record.groups[0].states[1] = episode_state_count;
  const auto applied = log.apply(record);
  BOOST_REQUIRE(!applied);
  BOOST_TEST((applied.error().code == errc::unsupported));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
} // namespace millrace::test
