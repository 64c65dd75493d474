// SPDX-License-Identifier: Apache-2.0
#include "actors/run_summary.hpp"

#include <sstream>

#include <boost/test/unit_test.hpp>

namespace millrace {
namespace {

group_key key(std::string group) { return {"run", "math", "t1", std::move(group)}; }

/// A run of three groups of four episodes, all of them trained.
struct summary_fixture {
  run_summary summary;

  summary_fixture() {
    summary.counters = std::make_shared<run_counters>();
    for (const auto *name : {"g0", "g1", "g2"}) {
      group_count group{.key = key(name), .size = 4};
      group.ok = 4;
      summary.expected.groups.push_back(group);
      summary.expected.episodes += 4;
    }
  }
  void end_group(std::uint64_t ordinal, std::string name, std::size_t episodes) {
    log_group group;
    group.ordinal = ordinal;
    group.key = key(std::move(name));
    group.states.assign(episodes, static_cast<std::uint8_t>(episode_state::trained));
    summary.entries.add(group);
  }
  void check(bool all_received = true, std::uint64_t surplus = 0) {
    summary.differences = differences_of(summary, all_received, surplus);
  }
  std::string text() const {
    std::ostringstream out;
    print(summary, out);
    return out.str();
  }
  bool says(std::string_view what) const { return text().find(what) != std::string::npos; }
};

BOOST_FIXTURE_TEST_SUITE(run_summaries, summary_fixture)

BOOST_AUTO_TEST_CASE(a_ledger_that_agrees_group_by_group_balances) {
  end_group(2, "g2", 4);
  end_group(0, "g0", 4);
  end_group(1, "g1", 4);
  check();
  BOOST_TEST(summary.balanced());
  BOOST_TEST(says(": balanced"));
  BOOST_TEST(to_json(summary)["differences"].empty());
}

BOOST_AUTO_TEST_CASE(a_difference_names_the_groups_with_both_numbers) {
  end_group(0, "g0", 4);
  end_group(1, "g1", 3);
  check();
  BOOST_TEST(!summary.balanced());
  BOOST_TEST(says("DOES NOT BALANCE"));
  BOOST_TEST(
      says("group " + key("g1").text() + " has 3 episodes in the ledger, and 4 in the source\n"));
  BOOST_TEST(
      says("group " + key("g2").text() + " has 0 episodes in the ledger, and 4 in the source\n"));
  BOOST_TEST(!says("group " + key("g0").text()));
  const auto rows = to_json(summary)["differences"];
  BOOST_REQUIRE_EQUAL(rows.size(), 2);
  BOOST_TEST(rows[0]["counted"] == 3);
  BOOST_TEST(rows[0]["expected"] == 4);
}

BOOST_AUTO_TEST_CASE(differences_that_cancel_each_other_out_are_found) {
  end_group(0, "g0", 5);
  end_group(1, "g1", 3);
  end_group(2, "g2", 4);
  check();
  BOOST_TEST(summary.entries.total() == summary.source_episodes());
  BOOST_TEST(!summary.balanced());
  BOOST_TEST(summary.differences.size() == 2U);
}

BOOST_AUTO_TEST_CASE(a_group_that_the_source_does_not_have_is_named_by_its_place) {
  for (const auto *name : {"g0", "g1", "g2", "g7"})
    end_group(static_cast<std::uint64_t>(name[1] - '0'), name, 4);
  check();
  BOOST_TEST(says("group 7 of source 0, which the recording does not have, has 4 episodes in the "
                  "ledger, and 0 in the source"));
}

BOOST_AUTO_TEST_CASE(only_the_first_differences_are_listed) {
  for (int i = 0; i < 20; ++i)
    summary.expected.groups.push_back({.key = key(fmt::format("x{}", i)), .size = 1, .ok = 1});
  summary.expected.episodes += 20;
  check();
  BOOST_TEST(summary.differences.size() == 5U);
}

BOOST_AUTO_TEST_CASE(only_a_group_that_its_deadline_closed_may_have_fewer_episodes) {
  log_group closed;
  closed.key = key("g0");
  closed.states.assign(3, static_cast<std::uint8_t>(episode_state::expired));
  closed.overdue = true;
  summary.entries.add(closed);
  end_group(1, "g1", 4);
  end_group(2, "g2", 4);
  summary.too_late = 1;
  check();
  BOOST_TEST(summary.balanced());
  summary.entries = {};
  summary.entries.add(closed);
  end_group(1, "g1", 3);
  end_group(2, "g2", 5);
  check();
  BOOST_TEST(!summary.balanced());
  BOOST_TEST(summary.differences.size() == 2U);
}

// Episodes without an end, surplus ones and groups that were not received stand in no group's
// count: then only the totals can be compared.
BOOST_AUTO_TEST_CASE(groups_are_compared_only_where_every_episode_can_be_counted_by_group) {
  end_group(0, "g0", 4);
  end_group(1, "g1", 4);
  end_group(2, "g2", 5);
  summary.expected.unfinished = 1;
  check();
  BOOST_TEST(summary.balanced());
  summary.expected.unfinished = 0;
  summary.unparsed = 1;
  check();
  BOOST_TEST(summary.balanced());
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
} // namespace millrace
