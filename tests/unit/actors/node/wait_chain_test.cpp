// SPDX-License-Identifier: Apache-2.0
#include "actors/node/wait_chain.hpp"

#include <boost/test/unit_test.hpp>

#include "tests/unit/actors/node/answers.hpp"

namespace millrace::test {
namespace {

wait_report explain(std::vector<status_line> processes) {
  return explain_waits({"maths", std::move(processes)});
}

/// "a > b > end" of each chain.
std::vector<std::string> ways(const wait_report &report) {
  std::vector<std::string> all;
  for (const auto &chain : report.chains) {
    std::string way;
    for (const auto &each : chain.links)
      way += (way.empty() ? "" : " > ") + each.who;
    if (!chain.end.empty())
      way += " | " + chain.end;
    all.push_back(way);
  }
  return all;
}

using texts = std::vector<std::string>;

BOOST_AUTO_TEST_SUITE(wait_chain_suite)

BOOST_AUTO_TEST_CASE(a_chain_goes_from_a_trainer_to_who_could_do_something) {
  const auto report =
      explain({waiting("reader-0", role::env_reader, "episodes", "", 300),
               waiting("assembler-1", role::assembler, "1 of 8 episodes of group maths/7/g17",
                       "reader-0", 412),
               waiting("planner", role::planner, "has 127/128 traces", "assembler-1", 410),
               waiting("trainer-3", role::trainer, "step 12", "planner", 412)});
  BOOST_TEST((ways(report) == texts{"trainer-3 > planner > assembler-1 > reader-0"}));
  BOOST_TEST(report.note.empty());
  BOOST_TEST(report.chains.at(0).links.at(0).what == "step 12");
}

BOOST_AUTO_TEST_CASE(a_wait_is_as_old_as_it_was_plus_the_age_of_the_news) {
  const auto report = explain({waiting("trainer-0", role::trainer, "step 1", "", 5)});
  BOOST_TEST(report.chains.at(0).links.at(0).ms == 5'200U);
}

BOOST_AUTO_TEST_CASE(a_role_leads_to_its_actor_that_waits_longest) {
  const auto report = explain({waiting("trainer-0", role::trainer, "step 1", "assembler", 9),
                               waiting("assembler-0", role::assembler, "x", "", 10),
                               waiting("assembler-1", role::assembler, "y", "", 30),
                               waiting("assembler-2", role::assembler, "z", "", 20),
                               waiting("scorer-0", role::scorer, "w", "", 99)});
  BOOST_TEST((ways(report) == texts{"trainer-0 > assembler-1"}));
}

BOOST_AUTO_TEST_CASE(an_actor_that_is_named_like_its_role_is_meant_by_its_name) {
  const auto report = explain({waiting("trainer-0", role::trainer, "step 1", "planner", 9),
                               waiting("planner", role::planner, "traces", "", 1),
                               waiting("other", role::planner, "traces", "", 5)});
  BOOST_TEST((ways(report) == texts{"trainer-0 > planner"}));
}

BOOST_AUTO_TEST_CASE(a_loop_is_said_and_ends_the_chain) {
  const auto report = explain({waiting("trainer-0", role::trainer, "step 1", "planner", 9),
                               waiting("planner", role::planner, "room", "packer-0", 8),
                               waiting("packer-0", role::packer, "a plan", "planner", 7)});
  BOOST_TEST(
      (ways(report) == texts{"trainer-0 > planner > packer-0 | this is a loop: back to planner"}));
}

BOOST_AUTO_TEST_CASE(who_waits_for_itself_is_a_loop) {
  const auto report = explain({waiting("trainer-0", role::trainer, "x", "trainer-0", 9)});
  BOOST_TEST((ways(report) == texts{"trainer-0 | this is a loop: back to trainer-0"}));
}

BOOST_AUTO_TEST_CASE(trainers_that_wait_for_the_same_are_one_chain) {
  const auto report = explain({waiting("trainer-0", role::trainer, "step 1", "planner", 9),
                               waiting("trainer-1", role::trainer, "step 1", "planner", 11),
                               waiting("trainer-2", role::trainer, "step 1", "planner", 10),
                               waiting("planner", role::planner, "traces", "", 8)});
  BOOST_TEST((ways(report) == texts{"trainer-1 > planner"}));
  BOOST_TEST(report.chains.at(0).links.at(0).others == 2U);
  BOOST_TEST(report.chains.at(0).links.at(1).others == 0U);
}

BOOST_AUTO_TEST_CASE(a_chain_stops_where_another_went_on) {
  const auto report = explain({waiting("trainer-0", role::trainer, "rank 1", "trainer-1", 5),
                               waiting("trainer-1", role::trainer, "step 1", "planner", 9),
                               waiting("planner", role::planner, "traces", "", 8)});
  BOOST_TEST((ways(report) == texts{"trainer-1 > planner", "trainer-0 | trainer-1: see above"}));
}

BOOST_AUTO_TEST_CASE(a_trainer_that_a_chain_went_through_begins_none) {
  const auto report = explain({waiting("trainer-0", role::trainer, "rank 1", "trainer-1", 9),
                               waiting("trainer-1", role::trainer, "step 1", "planner", 5),
                               waiting("planner", role::planner, "traces", "", 8)});
  BOOST_TEST((ways(report) == texts{"trainer-0 > trainer-1 > planner"}));
}

BOOST_AUTO_TEST_CASE(there_are_not_more_chains_than_a_person_reads) {
  std::vector<status_line> many;
  for (int i = 0; i < 20; ++i)
    many.push_back(
        waiting("trainer-" + std::to_string(i), role::trainer, "step " + std::to_string(i), "", 5));
  const auto report = explain(many);
  BOOST_TEST(report.chains.size() == max_wait_chains);
  BOOST_TEST(report.note == "trainers wait for more than these 8");
}

BOOST_AUTO_TEST_CASE(without_trainers_a_chain_begins_at_the_longest_wait) {
  const auto report = explain({waiting("planner", role::planner, "traces", "scorer", 8),
                               waiting("scorer-0", role::scorer, "groups", "", 5)});
  BOOST_TEST(report.note == "there is no trainer");
  BOOST_TEST((ways(report) == texts{"planner > scorer-0"}));
}

BOOST_AUTO_TEST_CASE(trainers_at_work_are_told_and_a_chain_begins_at_the_longest_wait) {
  const auto report =
      explain({waiting("planner", role::planner, "trainers", "trainer", 8),
               process_of("trainer-0", role::trainer), process_of("trainer-1", role::trainer)});
  BOOST_TEST(report.note == "no trainer waits");
  BOOST_TEST(
      (ways(report) == texts{"planner | trainer-0, trainer-1 do not wait: they are at work"}));
}

BOOST_AUTO_TEST_CASE(a_chain_ends_at_an_actor_that_does_not_wait) {
  const auto report = explain({waiting("trainer-0", role::trainer, "step 1", "planner", 8),
                               process_of("planner", role::planner)});
  BOOST_TEST((ways(report) == texts{"trainer-0 | planner does not wait: it is at work"}));
}

BOOST_AUTO_TEST_CASE(a_chain_ends_at_an_actor_that_has_ended) {
  auto planner = waiting("planner", role::planner, "traces", "", 8);
  const auto trainer = waiting("trainer-0", role::trainer, "step 1", "planner", 8);
  planner.entry.state = process_state::left;
  BOOST_TEST((ways(explain({planner, trainer})) == texts{"trainer-0 | planner has left"}));
  planner.entry.state = process_state::gone;
  planner.age_ms = 30'000;
  BOOST_TEST((ways(explain({planner, trainer})) ==
              texts{"trainer-0 | planner is gone: no news of its process planner for 30 s"}));
}

BOOST_AUTO_TEST_CASE(a_name_that_was_taken_over_is_that_of_the_running_process) {
  for (const bool reversed : {false, true}) {
    auto old = process_of("host-a", role::scorer);
    old.entry.state = process_state::gone;
    old.entry.actors = {{role::scorer, "scorer-0"}};
    auto young = process_of("host-b", role::scorer);
    young.entry.actors = old.entry.actors;
    std::vector all{old, young, waiting("trainer-0", role::trainer, "x", "scorer-0", 1)};
    if (reversed)
      std::swap(all[0], all[1]);
    BOOST_TEST((ways(explain(all)) == texts{"trainer-0 | scorer-0 does not wait: it is at work"}));
  }
}

BOOST_AUTO_TEST_CASE(an_actor_whose_process_is_silent_may_no_longer_be_at_work) {
  auto planner = process_of("planner", role::planner);
  planner.age_ms = 8'000;
  const auto trainer = waiting("trainer-0", role::trainer, "step 1", "planner", 8);
  BOOST_TEST((ways(explain({planner, trainer})) ==
              texts{"trainer-0 | planner did not wait when it was last heard of, 8.0 s ago"}));
}

BOOST_AUTO_TEST_CASE(a_link_of_a_silent_process_says_so) {
  auto planner = waiting("planner", role::planner, "traces", "", 8);
  planner.age_ms = 8'000;
  const auto report =
      explain({planner, waiting("trainer-0", role::trainer, "step 1", "planner", 8)});
  BOOST_TEST(report.chains.at(0).links.at(0).silent_ms == 0U);
  BOOST_TEST(report.chains.at(0).links.at(1).silent_ms == 8'000U);
}

BOOST_AUTO_TEST_CASE(a_role_that_nobody_has_is_said) {
  BOOST_TEST((ways(explain({waiting("trainer-0", role::trainer, "x", "scorer", 1)})) ==
              texts{"trainer-0 | there is no scorer"}));
}

BOOST_AUTO_TEST_CASE(a_name_that_nobody_has_is_said) {
  BOOST_TEST((ways(explain({waiting("trainer-0", role::trainer, "x", "scorer-9", 1)})) ==
              texts{"trainer-0 | nobody is named scorer-9"}));
}

BOOST_AUTO_TEST_CASE(who_waits_for_its_own_role_waits_for_those_that_do_not_wait_for_the_same) {
  std::vector<status_line> ranks;
  for (const std::string name : {"trainer-0", "trainer-1", "trainer-2"})
    ranks.push_back(waiting(name, role::trainer, "the other ranks", "trainer", 9));
  BOOST_TEST(
      (ways(explain(ranks)) == texts{"trainer-0 | this is a loop: every trainer waits for that"}));
  ranks[1] = process_of("trainer-1", role::trainer);
  BOOST_TEST((ways(explain(ranks)) == texts{"trainer-0 | trainer-1 does not wait: it is at work"}));
  ranks[1] = waiting("trainer-1", role::trainer, "step 3", "", 2);
  BOOST_TEST((ways(explain(ranks)) == texts{"trainer-0 > trainer-1"}));
}

BOOST_AUTO_TEST_CASE(of_many_at_work_three_are_named_or_one_that_is_silent) {
  std::vector<status_line> all{waiting("trainer-0", role::trainer, "x", "scorer", 9)};
  for (int i = 0; i < 5; ++i)
    all.push_back(process_of("scorer-" + std::to_string(i), role::scorer));
  BOOST_TEST((ways(explain(all)) == texts{"trainer-0 | scorer-0, scorer-1, scorer-2 and 2 more do "
                                          "not wait: they are at work"}));
  all[4].age_ms = 30'000;
  BOOST_TEST((ways(explain(all)) ==
              texts{"trainer-0 | scorer-3 did not wait when it was last heard of, 30 s ago"}));
}

BOOST_AUTO_TEST_CASE(a_feeder_is_no_trainer_and_its_trainer_need_not_be_registered) {
  auto rank = process_of("trainer-0", role::trainer,
                         {{"trainer-0", "step 1", "planner", 5}, {"feeder-0", "has 1/2", "", 9}});
  rank.entry.actors = {{role::trainer, "feeder-0"}};
  BOOST_TEST((ways(explain({rank, waiting("planner", role::planner, "rank 0", "feeder-0", 4)})) ==
              texts{"trainer-0 > planner > feeder-0"}));
  BOOST_TEST((ways(explain({rank, waiting("planner", role::planner, "ranks", "trainer", 4)})) ==
              texts{"trainer-0 > planner | this is a loop: back to trainer-0"}));
}

BOOST_AUTO_TEST_CASE(an_empty_system_has_nothing_to_explain) {
  BOOST_TEST(explain({}).note == "no process is registered");
  BOOST_TEST(explain({}).chains.empty());
  BOOST_TEST(explain({process_of("trainer-0", role::trainer)}).note == "nothing waits");
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
} // namespace millrace::test
