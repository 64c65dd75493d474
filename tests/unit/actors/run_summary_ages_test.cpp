// SPDX-License-Identifier: Apache-2.0
// How old episodes were, and what was too old or too late.
#include "actors/run_summary.hpp"

#include <boost/test/unit_test.hpp>

namespace millrace::test {
namespace {

step_report report(std::uint64_t step) {
  step_report out;
  out.step = step;
  out.staleness = {{0, 3}, {2, 1}};
  out.kept_lengths = {4, 40, 20};
  return out;
}

run_summary summary() {
  run_summary out;
  out.counters = std::make_shared<run_counters>();
  return out;
}

bool has(const std::string &text, const std::string &part) {
  return text.find(part) != std::string::npos;
}

BOOST_AUTO_TEST_SUITE(run_summary_ages)

BOOST_AUTO_TEST_CASE(a_step_without_old_episodes_says_nothing_of_ages) {
  auto one = report(1);
  one.staleness = {{0, 4}};
  BOOST_TEST(!has(line_of(one), "stale"));
  BOOST_TEST(!has(line_of(one), "old"));
}

BOOST_AUTO_TEST_CASE(a_step_says_how_old_its_episodes_are_and_what_was_too_old) {
  auto one = report(1);
  BOOST_TEST(line_of(one).ends_with(", episodes by staleness 0: 3, 2: 1"));
  one.stale_lengths = {2, 60, 50};
  BOOST_TEST(line_of(one).ends_with(
      ", episodes by staleness 0: 3, 2: 1, too old: 2 samples of 30 tokens on average, at most 50 "
      "(kept: 10 on average, at most 20)"));
}

BOOST_AUTO_TEST_CASE(ages_and_lengths_of_all_steps_are_summed) {
  auto all = summary();
  all.steps = {report(1), report(2)};
  all.entries.samples[static_cast<std::size_t>(episode_state::stale)] = {3, 90};
  all.entries.longest_stale = 50;
  const auto json = to_json(all);
  BOOST_TEST(json["staleness"]["0"] == 6U);
  BOOST_TEST(json["staleness"]["2"] == 2U);
  BOOST_TEST(json["kept_lengths"]["samples"] == 8U);
  BOOST_TEST(json["kept_lengths"]["mean"] == 10.0);
  BOOST_TEST(json["stale_lengths"]["longest"] == 50U);
  BOOST_TEST(json["step_reports"][1]["staleness"]["2"] == 1U);
}

BOOST_AUTO_TEST_CASE(what_came_after_the_deadline_of_its_group_balances_and_nothing_else_does) {
  auto all = summary();
  const group_key closed{"r", "e", "t", "closed"};
  const group_key other{"r", "e", "t", "other"};
  all.expected.groups = {{.key = closed, .size = 4, .ok = 3, .errored = 1},
                         {.key = other, .ok = 2}};
  all.expected.episodes = 6;
  all.entries[episode_state::expired] = 1; // of closed
  all.entries[episode_state::trained] = 2;
  all.entries.overdue = {{closed, 1}};
  all.too_late = count_too_late(all.expected, all.entries);
  BOOST_TEST(all.too_late == 3U);
  BOOST_TEST(all.balanced());
  all.entries[episode_state::trained] = 1;
  BOOST_TEST(!all.balanced());
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
} // namespace millrace::test
