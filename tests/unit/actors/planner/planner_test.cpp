// SPDX-License-Identifier: Apache-2.0
#include "actors/planner/planner.hpp"

#include "tests/unit/actors/planner/planner_fixture.hpp"

namespace millrace::test {
namespace {

BOOST_FIXTURE_TEST_SUITE(planner_suite, planner_fixture)

BOOST_AUTO_TEST_CASE(groups_are_taken_in_the_order_of_the_source_whatever_order_they_come_in) {
  begin();
  group(2);
  group(1);
  BOOST_TEST(packer.got<pack_bin>().empty());
  group(0);
  BOOST_TEST(packed() == (std::vector<std::uint64_t>{0, 1}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(without_deterministic_groups_are_taken_as_they_come) {
  options.deterministic = false;
  begin();
  group(2);
  BOOST_TEST(packed() == (std::vector<std::uint64_t>{2}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(every_rank_hears_how_many_micro_batches_a_step_has_for_it) {
  begin();
  group(0);
  BOOST_TEST(feeder0.got<stage_step>().at(0).micro_batches == 1U);
  BOOST_TEST(feeder1.got<stage_step>().at(0).micro_batches == 1U);
  BOOST_TEST(packer.got<pack_bin>().size() == 2U);
}

BOOST_AUTO_TEST_CASE(no_more_steps_are_packed_than_lookahead_beyond_the_one_in_training) {
  begin();
  for (std::uint64_t i = 0; i < 4; ++i)
    group(i);
  BOOST_TEST(feeder0.got<stage_step>().size() == 2U);
  stage(1);
  train(1);
  BOOST_TEST(feeder0.got<stage_step>().size() == 3U);
}

BOOST_AUTO_TEST_CASE(a_step_is_committed_when_every_rank_has_staged_it_and_not_before) {
  begin();
  group(0);
  stage(1, 0);
  BOOST_TEST(feeder0.got<commit_step>().empty());
  BOOST_TEST(assembler.got<groups_settled>().empty());
  stage(1, 1);
  BOOST_TEST(feeder0.got<commit_step>().size() == 1U);
  BOOST_TEST(feeder1.got<commit_step>().size() == 1U);
  BOOST_TEST(!feeder1.got<commit_step>()[0].staleness.empty());
  BOOST_TEST(assembler.got<groups_settled>().size() == 1U);
}

BOOST_AUTO_TEST_CASE(steps_are_committed_in_order_whatever_order_they_are_staged_in) {
  begin();
  group(0);
  group(1);
  stage(2);
  BOOST_TEST(feeder0.got<commit_step>().empty());
  stage(1);
  BOOST_REQUIRE_EQUAL(feeder0.got<commit_step>().size(), 2);
  BOOST_TEST(feeder0.got<commit_step>()[0].step == 1U);
  BOOST_TEST(feeder0.got<commit_step>()[1].step == 2U);
}

BOOST_AUTO_TEST_CASE(episodes_are_trained_only_once_every_rank_has_trained_their_step) {
  begin();
  group(0);
  end(1);
  stage(1);
  world.tell(*subject, step_trained{1, 0, {}});
  BOOST_TEST(supervisor.got<run_finished>().empty());
  world.tell(*subject, step_trained{1, 1, {}});
  BOOST_TEST((*finished().entries)[episode_state::trained] == 2U);
  BOOST_TEST(finished().entries->total() == 2U);
}

BOOST_AUTO_TEST_CASE(a_short_last_batch_ships_by_default) {
  options.batch.traces = 16;
  begin();
  group(0);
  BOOST_TEST(packer.got<pack_bin>().empty());
  end(1);
  BOOST_TEST(!packer.got<pack_bin>().empty());
}

BOOST_AUTO_TEST_CASE(a_short_last_batch_stays_held_if_the_config_says_so) {
  options.batch.traces = 16;
  options.batch.last = last_batch::hold;
  begin();
  group(0);
  end(1);
  BOOST_TEST(packer.got<pack_bin>().empty());
  BOOST_TEST((*finished().entries)[episode_state::held] == 2U);
}

// No empty batch leaves.
BOOST_AUTO_TEST_CASE(a_source_of_errored_episodes_ends_without_a_step) {
  begin();
  for (std::uint64_t i = 0; i < 64; ++i)
    score(i, header(0, 0, wire::EpisodeStatus::Errored, i));
  end(64);
  BOOST_TEST(packer.got<pack_bin>().empty());
  BOOST_TEST((*finished().entries)[episode_state::errored] == 128U);
}

BOOST_AUTO_TEST_CASE(a_group_without_kept_samples_is_settled_at_once_and_goes_to_no_step) {
  begin();
  score(0, header(1, 1));
  BOOST_TEST(packer.got<pack_bin>().empty());
  world.pass_time(); // until it is on the disk
  BOOST_REQUIRE_EQUAL(assembler.got<groups_settled>().size(), 1);
  end(1);
  BOOST_TEST((*finished().entries)[episode_state::pruned] == 2U);
}

BOOST_AUTO_TEST_CASE(an_expired_group_keeps_nobody_waiting) {
  begin();
  world.tell(*subject,
             group_tombstone{
                 {0, 0}, header(1, 0), tombstone_reason::expired, "1 of 2", assembler.actor()});
  group(1);
  end(2);
  stage(1);
  train(1);
  BOOST_TEST((*finished().entries)[episode_state::expired] == 2U);
  BOOST_TEST((*finished().entries)[episode_state::trained] == 2U);
}

BOOST_AUTO_TEST_CASE(max_steps_holds_what_is_left) {
  options.max_steps = 1;
  begin();
  group(0);
  group(1);
  stage(1);
  train(1);
  BOOST_TEST((*finished().entries)[episode_state::trained] == 2U);
  BOOST_TEST((*finished().entries)[episode_state::held] == 2U);
}

BOOST_AUTO_TEST_CASE(a_stop_trains_what_is_packed_and_holds_the_rest) {
  begin();
  for (std::uint64_t i = 0; i < 4; ++i)
    group(i);
  world.tell(*subject, stop_run{"a test"});
  BOOST_TEST(supervisor.got<run_finished>().empty());
  stage(1);
  stage(2);
  train(1);
  train(2);
  BOOST_TEST(feeder0.got<stage_step>().size() == 2U);
  BOOST_TEST((*finished().entries)[episode_state::trained] == 4U);
  BOOST_TEST((*finished().entries)[episode_state::held] == 4U);
}

BOOST_AUTO_TEST_CASE(permits_run_ahead_of_what_has_arrived_by_the_open_groups) {
  begin();
  BOOST_TEST(permitted() == 4U);
  group(0);
  BOOST_TEST(permitted() == 5U);
}

// Packers that stand still stop the readers.
BOOST_AUTO_TEST_CASE(packers_that_stand_still_stop_the_permits) {
  begin();
  std::uint64_t sent = 0;
  while (sent < 1000 && sent < permitted())
    group(sent++);
  // Two steps are packed, two steps' worth wait, and the open groups came before the limit was
  // seen.
  BOOST_TEST(sent < 10U);
  const auto stopped_at = permitted();
  world.tell(*subject, permit_wanted{0, sent});
  BOOST_TEST(permitted() == stopped_at);
  for (std::uint64_t step = 1; step <= 5; ++step) {
    stage(step);
    train(step);
  }
  BOOST_TEST(permitted() > stopped_at);
}

BOOST_AUTO_TEST_CASE(held_memory_over_the_limit_stops_the_permits) {
  counters->memory->add(2'000'000);
  begin();
  BOOST_TEST(permitted() == 0U);
}

BOOST_AUTO_TEST_CASE(a_hungry_planner_lets_one_group_begin_whatever_the_limits_say) {
  counters->memory->add(2'000'000);
  begin();
  world.tell(*subject, permit_wanted{0, 0});
  BOOST_TEST(permitted() == 1U);
  group(0); // a step is packed: not hungry
  world.tell(*subject, permit_wanted{0, 1});
  BOOST_TEST(permitted() == 1U);
  stage(1); // and in training: hungry for the one after it
  train(1);
  BOOST_TEST(permitted() == 2U);
}

BOOST_AUTO_TEST_CASE(annotations_that_point_outside_their_header_end_the_run) {
  begin();
  const auto two = header(1, 0);
  const auto one = header_of(group_of({episode_of("a", 1, {prompt(-1, 3)})})).bytes();
  auto annotations =
      annotate(parse<wire::GroupHeader>(two).value(), env_config{}, {}).value().annotations;
  world.tell(*subject, group_scored{{0, 0}, one, annotations, assembler.actor()});
  BOOST_REQUIRE_EQUAL(supervisor.got<run_failed>().size(), 1);
  BOOST_TEST((supervisor.got<run_failed>()[0].what.code == errc::conflict));
}

BOOST_AUTO_TEST_CASE(hunger_is_told_once_for_each_change_to_readers_and_supervisor) {
  begin();
  const auto told = [](auto &who) {
    std::vector<bool> out;
    for (const auto &one : who.template got<hunger>())
      out.push_back(one.hungry);
    return out;
  };
  BOOST_TEST((told(supervisor) == std::vector<bool>{true}));
  reader.got<hunger>().clear();
  world.tell(*subject, permit_wanted{0, 0}); // nothing changes
  BOOST_TEST(reader.got<hunger>().empty());
  group(0); // a step is packed
  BOOST_TEST((told(supervisor) == std::vector<bool>{true, false}));
  group(1);
  BOOST_TEST((told(reader) == std::vector<bool>{false}));
}

// The step in training is not one beyond it.
BOOST_AUTO_TEST_CASE(a_commit_makes_hungry_if_nothing_is_packed_beyond_it) {
  begin();
  group(0);
  stage(1, 0);
  BOOST_TEST(!reader.got<hunger>().back().hungry);
  stage(1, 1);
  BOOST_TEST(reader.got<hunger>().back().hungry);
}

BOOST_AUTO_TEST_CASE(a_stalled_trainer_makes_nobody_hungry) {
  begin();
  for (std::uint64_t i = 0; i < 4; ++i)
    group(i);
  stage(1);
  stage(2); // one in training, one beyond it
  BOOST_TEST(!reader.got<hunger>().back().hungry);
}

// More data would not help: it would only fill memory.
BOOST_AUTO_TEST_CASE(a_planner_that_waits_for_packers_with_a_whole_batch_is_not_hungry) {
  counters->memory->add(2'000'000);
  begin_alone();
  up(role::env_reader, "env-reader-0", reader.actor());
  ranks_up();
  BOOST_TEST(reader.got<hunger>().back().hungry);
  group(0);
  BOOST_TEST(!reader.got<hunger>().back().hungry);
  world.tell(*subject, permit_wanted{0, 1});
  BOOST_TEST(permitted() == 0U);
}

BOOST_AUTO_TEST_CASE(a_rank_that_stages_a_step_that_is_not_cut_ends_the_run) {
  begin();
  stage(1, 0);
  BOOST_TEST(failure() == "rank 0 staged step 1, which is not to be staged");
}

BOOST_AUTO_TEST_CASE(a_rank_that_there_is_not_and_that_stages_a_step_ends_the_run) {
  begin();
  group(0);
  stage(1, 2);
  BOOST_TEST(failure().find("rank 2 staged step 1") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_rank_that_stages_a_step_twice_ends_the_run) {
  begin();
  group(0);
  stage(1, 0);
  stage(1, 0);
  BOOST_TEST(failure().find("rank 0 staged step 1") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(digests_of_other_micro_batches_than_were_planned_end_the_run) {
  for (const std::vector<micro_batch_digest> &digests :
       {std::vector<micro_batch_digest>{}, {{1, 0, {}}}, {{0, 1, {}}}, {{0, 0, {}}, {0, 1, {}}}}) {
    begin();
    supervisor.got<run_failed>().clear();
    group(0);
    world.tell(*subject, step_staged{1, 0, digests, 100, ranks[0].epoch});
    BOOST_TEST(failure().find("rank 0 staged step 1") != std::string::npos);
  }
}

BOOST_AUTO_TEST_CASE(a_rank_that_trains_a_step_that_is_not_committed_ends_the_run) {
  begin();
  group(0);
  stage(1, 0);
  world.tell(*subject, step_trained{1, 0, {}});
  BOOST_TEST(failure() == "rank 0 trained step 1, which is not committed");
}

BOOST_AUTO_TEST_CASE(a_rank_that_there_is_not_and_that_trains_a_step_ends_the_run) {
  begin();
  group(0);
  stage(1);
  world.tell(*subject, step_trained{1, 7, {}});
  BOOST_TEST(failure().find("rank 7 trained step 1") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(after_nonsense_nothing_more_is_said_or_done) {
  begin();
  stage(9, 0);
  stage(9, 1);
  train(9);
  group(0);
  BOOST_TEST(failure().find("step 9") != std::string::npos);
  BOOST_TEST(packer.got<pack_bin>().empty());
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
} // namespace millrace::test
