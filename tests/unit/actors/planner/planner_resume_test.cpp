// SPDX-License-Identifier: Apache-2.0
// A planner that starts again, and ranks that do.
#include "actors/planner/config_change.hpp"
#include "tests/unit/actors/planner/planner_fixture.hpp"

namespace millrace::test {
namespace {

struct resume_fixture : planner_fixture {
  resume_fixture() { options.keep = step_keep::durable; }

  /// Everybody but the ranks has heard nothing yet.
  void forget_all() {
    reader.got<groups_settled>().clear();
    reader.got<groups_wanted>().clear();
    assembler.got<groups_settled>().clear();
    assembler.got<groups_wanted>().clear();
    packer.got<pack_bin>().clear();
    for (auto *feeder : {&feeder0, &feeder1}) {
      feeder->got<stage_step>().clear();
      feeder->got<commit_step>().clear();
      feeder->got<steps_recorded>().clear();
    }
  }
  /// The ranks' processes have ended and come again, from the checkpoint of this step.
  void ranks_start_again(std::uint64_t saved) {
    for (auto &rank : ranks)
      rank = {.rank = rank.rank, .next = saved + 1, .saved = saved, .trained_to = saved};
  }
  void save(std::uint64_t step) {
    for (auto &rank : ranks) {
      rank.saved = step;
      world.tell(*subject, checkpoint_saved{rank.rank, step});
    }
  }
  void lose(std::uint32_t rank) {
    world.tell(*subject,
               peer_down{role::trainer, named(fmt::format("feeder-{}", rank), feeder(rank).actor()),
                         "lost"});
  }
  static std::vector<std::uint64_t> steps_of(const std::vector<commit_step> &commits) {
    std::vector<std::uint64_t> out;
    for (const auto &one : commits)
      out.push_back(one.step);
    return out;
  }
};

using numbers = std::vector<std::uint64_t>;

BOOST_FIXTURE_TEST_SUITE(planner_resume, resume_fixture)

BOOST_AUTO_TEST_CASE(the_ranks_are_one_job_before_a_step_is_cut) {
  begin_alone();
  up(role::packer, "packer-0", packer.actor());
  world.tell(*subject, peer_up{role::trainer, named("feeder-0", feeder0.actor())});
  world.tell(*subject, peer_up{role::trainer, named("feeder-1", feeder1.actor())});
  group(0);
  BOOST_TEST(packer.got<pack_bin>().empty());
  ranks_answer();
  BOOST_TEST(!packer.got<pack_bin>().empty());
  BOOST_TEST(ranks[0].generation == 1U);
}

BOOST_AUTO_TEST_CASE(ranks_that_need_different_steps_are_refused_by_name) {
  ranks[1].next = 2;
  begin_alone();
  ranks_up();
  BOOST_TEST(failure().find("rank 1 needs step 2 next, but the log ends with step 0") !=
             std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_group_that_has_ended_in_an_earlier_life_is_answered_settled) {
  begin();
  group(0);
  stage(1);
  train(1);
  world.pass_time();
  ranks[0].next = ranks[1].next = 2;
  begin();
  forget_all();
  group(0);
  world.pass_time();
  BOOST_TEST(assembler.got<groups_settled>().size() == 1U);
  BOOST_TEST(packer.got<pack_bin>().empty());
}

BOOST_AUTO_TEST_CASE(a_step_that_was_staged_and_not_committed_is_planned_anew) {
  begin();
  group(0);
  stage(1, 0);
  begin();
  forget_all();
  group(0);
  BOOST_TEST(feeder0.got<stage_step>().size() == 1U);
  stage(1);
  BOOST_TEST(steps_of(feeder0.got<commit_step>()) == numbers{1}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(what_an_earlier_planner_had_staged_does_not_count) {
  begin();
  group(0);
  const auto before = ranks[0].epoch;
  begin();
  group(0);
  world.tell(*subject, step_staged{1, 0, {{0, 0, {}}}, 100, before});
  stage(1, 1);
  BOOST_TEST(feeder0.got<commit_step>().empty());
}

BOOST_AUTO_TEST_CASE(ranks_that_live_go_on_when_only_the_planner_starts_again) {
  begin();
  group(0);
  group(1);
  stage(1);
  stage(2);
  train(1);
  world.pass_time();
  for (auto &rank : ranks) {
    rank.next = 3;
    rank.committed = {{2, feeder0.got<commit_step>().at(1).step_digest}};
  }
  begin();
  BOOST_TEST(ranks[0].generation == 1U);
  train(2);
  end(2);
  BOOST_TEST((*finished().entries)[episode_state::trained] == 4U);
  BOOST_TEST(finished().steps.size() == 2U);
}

BOOST_AUTO_TEST_CASE(a_step_that_was_trained_while_no_planner_heard_it_counts) {
  begin();
  group(0);
  stage(1);
  for (auto &rank : ranks) {
    rank.next = 2;
    rank.committed = {{1, feeder0.got<commit_step>().at(0).step_digest}};
    rank.trained = {{1, {5, 6, 7}}};
    rank.trained_to = 1;
  }
  begin();
  end(1);
  BOOST_TEST((*finished().entries)[episode_state::trained] == 2U);
  BOOST_TEST(finished().steps.at(0).totals.ce == 6);
}

BOOST_AUTO_TEST_CASE(a_commit_that_a_rank_did_not_hear_of_is_made_again_for_it_alone) {
  begin();
  group(0);
  stage(1);
  ranks[0].next = 2;
  ranks[0].committed = {{1, feeder0.got<commit_step>().at(0).step_digest}};
  begin();
  BOOST_TEST(packer.got<pack_bin>().size() == 2U); // those of the first life
  forget_all();
  world.tell(*subject, group_held{{0, 0}, assembler.actor()});
  BOOST_REQUIRE_EQUAL(packer.got<pack_bin>().size(), 1);
  BOOST_TEST(parse<wire::BinPlan>(packer.got<pack_bin>()[0].plan).value()->rank() == 1U);
  stage(1, 1);
  BOOST_TEST(feeder0.got<commit_step>().empty());
  BOOST_TEST(steps_of(feeder1.got<commit_step>()) == numbers{1}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_rank_that_committed_something_else_ends_the_run_with_both_digests) {
  begin();
  group(0);
  stage(1);
  ranks[0].committed = {{1, {{9}}}};
  ranks[0].next = 2;
  begin();
  BOOST_TEST(failure().find("rank 0 holds step 1 with digest 09") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_log_that_is_older_than_the_ranks_is_refused) {
  ranks[0].committed = {{1, {}}};
  ranks[0].next = 2;
  begin_alone();
  ranks_up();
  BOOST_TEST(failure().find("rank 0 holds step 1 as committed") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_lost_rank_ends_the_job_of_the_others_and_throws_away_what_was_staged) {
  begin();
  group(0);
  stage(1, 0);
  lose(1);
  BOOST_REQUIRE_EQUAL(feeder0.got<end_generation>().size(), 1);
  BOOST_TEST(feeder0.got<end_generation>()[0].generation == 1U);
  BOOST_TEST(supervisor.got<run_failed>().empty());
  lose(0);
  forget_all();
  ranks_start_again(0);
  ranks_up();
  BOOST_TEST(ranks[0].generation == 2U);
  BOOST_TEST(feeder0.got<stage_step>().size() == 1U);
  BOOST_TEST(packer.got<pack_bin>().size() == 2U);
  BOOST_TEST(packer.got<pack_bin>()[0].claim.epoch == ranks[0].epoch);
}

BOOST_AUTO_TEST_CASE(late_words_of_a_job_that_has_ended_are_no_conflict) {
  begin();
  group(0);
  group(1);
  stage(1);
  lose(1);
  stage(2, 0);
  world.tell(*subject, step_trained{1, 0, {}});
  BOOST_TEST(supervisor.got<run_failed>().empty());
}

BOOST_AUTO_TEST_CASE(a_rank_that_missed_the_end_of_its_job_is_told_to_end) {
  begin();
  ranks[0].generation = 1;
  ranks[1] = {.rank = 1, .next = 1};
  begin();
  BOOST_REQUIRE_EQUAL(feeder0.got<end_generation>().size(), 1);
  BOOST_TEST(feeder1.got<end_generation>().empty());
}

// Rank 1, in no job, is not asked twice.
BOOST_AUTO_TEST_CASE(the_ranks_that_are_told_to_end_are_the_only_ones_to_speak_again) {
  begin();
  ranks[0].generation = 1;
  ranks[1] = {.rank = 1, .next = 1};
  begin();
  lose(0);
  ranks[0] = {.rank = 0, .next = 1};
  up(role::trainer, "feeder-0", feeder0.actor());
  BOOST_TEST(ranks[0].generation == 2U);
  BOOST_TEST(ranks[1].generation == 2U);
}

BOOST_AUTO_TEST_CASE(a_step_that_is_trained_while_the_ranks_gather_counts) {
  begin();
  group(0);
  stage(1);
  for (auto &rank : ranks) {
    rank.next = 2;
    rank.committed = {{1, feeder0.got<commit_step>().at(0).step_digest}};
  }
  begin_alone();
  up(role::env_reader, "env-reader-0", reader.actor());
  up(role::trainer, "feeder-0", feeder0.actor());
  world.tell(*subject, step_trained{1, 0, {}});
  up(role::trainer, "feeder-1", feeder1.actor());
  world.tell(*subject, step_trained{1, 1, {}});
  end(1);
  BOOST_TEST((*finished().entries)[episode_state::trained] == 2U);
}

BOOST_AUTO_TEST_CASE(steps_after_the_checkpoint_are_made_again_for_a_job_that_starts_again) {
  begin();
  for (std::uint64_t i = 0; i < 3; ++i) {
    group(i);
    stage(i + 1);
    train(i + 1);
  }
  save(1);
  world.pass_time();
  lose(0);
  lose(1);
  forget_all();
  ranks_start_again(1);
  ranks_up();
  BOOST_REQUIRE_EQUAL(reader.got<groups_wanted>().size(), 2); // lookahead is 1
  BOOST_TEST(reader.got<groups_wanted>()[0].scored);
  BOOST_TEST((reader.got<groups_wanted>()[0].groups == std::vector<group_ref>{{1, 0}}));
  BOOST_TEST(packer.got<pack_bin>().empty()); // nobody has offered the bytes
  world.tell(*subject, group_held{{1, 0}, other_assembler.actor()});
  BOOST_REQUIRE_EQUAL(packer.got<pack_bin>().size(), 2);
  BOOST_TEST((packer.got<pack_bin>()[0].groups.at(0).assembler == peer(other_assembler.actor())));
  stage(2);
  BOOST_TEST(steps_of(feeder0.got<commit_step>()) == numbers{2}, boost::test_tools::per_element());
  train(2);
  world.tell(*subject, group_held{{2, 0}, other_assembler.actor()});
  stage(3);
  train(3);
  end(3);
  BOOST_TEST((*finished().entries)[episode_state::trained] == 6U);
  BOOST_TEST((*finished().entries)[episode_state::rolled_back] == 0U);
  BOOST_TEST(supervisor.got<step_done>().size() == 3U); // said once
}

// The log calls steps 2 and 3 trained: the job before this one has trained them.
BOOST_AUTO_TEST_CASE(a_planner_that_starts_again_asks_what_this_job_has_trained_and_not_the_log) {
  begin();
  for (std::uint64_t i = 0; i < 3; ++i) {
    group(i);
    stage(i + 1);
    train(i + 1);
  }
  save(1);
  world.pass_time();
  lose(0);
  lose(1);
  ranks_start_again(1);
  ranks_up();
  for (const std::uint64_t step : {2U, 3U}) {
    world.tell(*subject, group_held{{step - 1, 0}, other_assembler.actor()});
    stage(step);
  }
  for (auto &rank : ranks) {
    rank.next = 4;
    rank.committed.clear();
    for (const auto &commit : feeder0.got<commit_step>())
      if (commit.step > 1)
        rank.committed.push_back({commit.step, commit.step_digest});
  }
  begin();
  end(3);
  BOOST_TEST(supervisor.got<run_finished>().empty());
  train(2);
  BOOST_TEST(supervisor.got<run_finished>().empty());
  train(3);
  BOOST_TEST((*finished().entries)[episode_state::trained] == 6U);
}

BOOST_AUTO_TEST_CASE(a_step_that_does_not_become_what_it_was_ends_the_run_with_both_digests) {
  begin();
  group(0);
  stage(1);
  lose(0);
  lose(1);
  ranks_start_again(0);
  ranks_up();
  world.tell(*subject, group_held{{0, 0}, assembler.actor()});
  world.tell(*subject, step_staged{1, 0, {{0, 0, {{7}}}}, 100, ranks[0].epoch});
  BOOST_TEST(failure().find("step 1 was made again for rank 0, and micro batch 0 has digest 07") !=
             std::string::npos);
}

BOOST_AUTO_TEST_CASE(bytes_that_were_lost_with_an_assembler_are_asked_for_again) {
  begin();
  group(0);
  stage(1);
  lose(0);
  lose(1);
  ranks_start_again(0);
  ranks_up();
  world.tell(*subject, group_held{{0, 0}, named("assembler-0", assembler.actor())});
  forget_all();
  world.tell(*subject, peer_down{role::assembler, named("assembler-0", assembler.actor()), "lost"});
  BOOST_REQUIRE_EQUAL(reader.got<groups_wanted>().size(), 1);
  BOOST_TEST(packer.got<pack_bin>().empty());
  world.tell(*subject, group_held{{0, 0}, other_assembler.actor()});
  BOOST_TEST(packer.got<pack_bin>().size() == 2U);
}

BOOST_AUTO_TEST_CASE(a_reader_that_comes_late_hears_what_a_step_is_made_again_from) {
  begin();
  group(0);
  stage(1);
  lose(0);
  lose(1);
  world.tell(*subject, peer_down{role::env_reader, named("env-reader-0", reader.actor()), "lost"});
  ranks_start_again(0);
  ranks_up();
  forget_all();
  reader_probe again(world);
  up(role::env_reader, "env-reader-0", again.actor());
  BOOST_REQUIRE_EQUAL(again.got<groups_wanted>().size(), 1);
  BOOST_TEST((again.got<groups_wanted>()[0].groups == std::vector<group_ref>{{0, 0}}));
}

BOOST_AUTO_TEST_CASE(without_durable_steps_a_job_that_starts_again_rolls_back_and_says_so) {
  options.keep = step_keep::trained;
  begin();
  for (std::uint64_t i = 0; i < 2; ++i) {
    group(i);
    stage(i + 1);
  }
  train(1);
  world.pass_time();
  lose(0);
  lose(1);
  forget_all();
  ranks_start_again(0);
  ranks_up();
  // Group 0 was trained and is lost; group 1 was not and is wanted again, to be scored.
  BOOST_REQUIRE_EQUAL(reader.got<groups_wanted>().size(), 1);
  BOOST_TEST(!reader.got<groups_wanted>()[0].scored);
  BOOST_TEST((reader.got<groups_wanted>()[0].groups == std::vector<group_ref>{{1, 0}}));
  group(1);
  stage(1);
  train(1);
  end(2);
  BOOST_TEST((*finished().entries)[episode_state::trained] == 2U);
  BOOST_TEST((*finished().entries)[episode_state::rolled_back] == 2U);
  BOOST_TEST(finished().steps.size() == 1U);
}

BOOST_AUTO_TEST_CASE(readers_may_forget_a_group_once_its_step_is_durable_and_not_before) {
  begin();
  group(0);
  stage(1);
  train(1);
  world.pass_time();
  for (const auto &told : reader.got<groups_settled>())
    BOOST_TEST(!told.for_good);
  reader.got<groups_settled>().clear();
  save(1);
  world.pass_time();
  BOOST_REQUIRE_EQUAL(reader.got<groups_settled>().size(), 1);
  BOOST_TEST(reader.got<groups_settled>()[0].for_good);
  BOOST_TEST(feeder0.got<steps_recorded>().back().durable == 1U);
}

BOOST_AUTO_TEST_CASE(a_reader_that_starts_again_hears_what_need_not_be_sent) {
  begin();
  group(0);
  group(1);
  stage(1);
  train(1);
  save(1);
  stage(2);
  world.pass_time();
  reader_probe again(world);
  up(role::env_reader, "env-reader-0", again.actor());
  BOOST_REQUIRE_EQUAL(again.got<groups_settled>().size(), 2);
  BOOST_TEST((again.got<groups_settled>()[0].groups == std::vector<group_ref>{{0, 0}}));
  BOOST_TEST(again.got<groups_settled>()[0].for_good);
  BOOST_TEST((again.got<groups_settled>()[1].groups == std::vector<group_ref>{{1, 0}}));
  BOOST_TEST(!again.got<groups_settled>()[1].for_good);
}

BOOST_AUTO_TEST_CASE(an_assembler_with_a_journal_hears_what_is_done_before_the_hello) {
  options.journals = true;
  begin();
  group(0);
  group(1);
  stage(1);
  train(1);
  save(1);
  stage(2);
  world.pass_time();
  std::vector<std::string> heard;
  const auto later =
      world.system().spawn<function_actor>([&heard](caf::event_based_actor *) -> caf::behavior {
        return {[&heard](const planner_hello &) { heard.push_back("hello"); },
                [&heard](const groups_settled &in) {
                  heard.push_back(fmt::format("{} {}", in.groups.at(0).ordinal, in.for_good));
                },
                [](const groups_wanted &) {}};
      });
  up(role::assembler, "assembler-2", later);
  const std::vector<std::string> want{"0 true", "1 false", "hello"};
  BOOST_TEST(heard == want, boost::test_tools::per_element());
  world.end(later);
}

BOOST_AUTO_TEST_CASE(a_journal_keeps_a_group_until_its_step_is_durable) {
  options.journals = true;
  begin();
  group(0);
  stage(1);
  train(1);
  world.pass_time();
  for (const auto &told : assembler.got<groups_settled>())
    BOOST_TEST(!told.for_good);
  assembler.got<groups_settled>().clear();
  save(1);
  world.pass_time();
  BOOST_REQUIRE_EQUAL(assembler.got<groups_settled>().size(), 1);
  BOOST_TEST(assembler.got<groups_settled>()[0].for_good);
}

BOOST_AUTO_TEST_CASE(a_run_with_checkpoints_ends_with_one) {
  options.checkpoints = true;
  begin();
  group(0);
  stage(1);
  train(1);
  end(1);
  BOOST_TEST(supervisor.got<run_finished>().empty());
  BOOST_REQUIRE_EQUAL(feeder1.got<finish_training>().size(), 1);
  BOOST_TEST(feeder1.got<finish_training>()[0].step == 1U);
  save(1);
  BOOST_TEST((*finished().entries)[episode_state::trained] == 2U);
}

BOOST_AUTO_TEST_CASE(who_is_refused_writes_nothing_more) {
  begin();
  group(0);
  const auto own = packer.got<pack_bin>().back().claim;
  packer.got<pack_bin>().clear();
  world.tell(*subject, planner_refused{{{{1}}, 9}, "not about this one"});
  BOOST_TEST(supervisor.got<run_failed>().empty());
  world.tell(*subject, planner_refused{own, "another planner leads this run"});
  BOOST_TEST(failure() == "another planner leads this run");
  group(1);
  BOOST_TEST(packer.got<pack_bin>().empty());
}

BOOST_AUTO_TEST_CASE(a_folder_of_another_run_source_or_size_is_refused_by_name) {
  begin();
  world.end(*subject);
  const run_identity same{"a run", "a source", "1", "ab", 2};
  const auto refusal = [&](auto change) {
    auto who = same;
    change(who);
    const auto log = run_log::open(state.path(), who, step_keep::durable, false);
    BOOST_REQUIRE(!log);
    BOOST_TEST((log.error().code == errc::bad_argument));
    return log.error().message;
  };
  BOOST_TEST(refusal([](auto &who) { who.run = "b"; }).find("is of run 'a run'") !=
             std::string::npos);
  BOOST_TEST(refusal([](auto &who) {
               who.source = "b";
             }).find("reads a source, the config says b") != std::string::npos);
  BOOST_TEST(refusal([](auto &who) { who.ranks = 3; }).find("with 2 ranks") != std::string::npos);
  BOOST_TEST(run_log::open(state.path(), same, step_keep::durable, false).has_value());
}

struct config_fixture {
  temporary_folder state;
  run_identity who{"a run", "a source", "1",
                   "ab",    2,          "batch.traces = 2\nenv.math.group_size = 4\n"};

  result<std::unique_ptr<run_log>> open() const {
    return run_log::open(state.path(), who, step_keep::durable, false);
  }
  /// A start with other settings.
  void change(std::string settings) {
    who.config_digest += "c";
    who.settings = std::move(settings);
  }
  std::string written() const { return read_config_file(state.path()).value(); }
};

BOOST_AUTO_TEST_CASE(a_config_that_changed_wins_and_is_what_the_next_start_is_compared_with) {
  config_fixture here;
  BOOST_REQUIRE(here.open());
  BOOST_TEST(here.written() == here.who.settings);
  here.change("batch.traces = 3\nenv.math.group_size = 4\n");
  BOOST_REQUIRE(here.open());
  BOOST_TEST(here.written() == here.who.settings);
}

BOOST_AUTO_TEST_CASE(a_setting_that_the_log_rests_on_is_refused_by_name) {
  config_fixture here;
  {
    auto log = here.open().value();
    log_settled record;
    auto &entry = record.groups.emplace_back();
    entry.key = {"run", "env", "task", "group"};
    entry.states = {0};
    BOOST_REQUIRE(log->write(record));
  }
  const auto before = here.written();
  here.change("batch.traces = 2\nenv.math.group_size = 8\n");
  const auto log = here.open();
  BOOST_REQUIRE(!log);
  BOOST_TEST((log.error().code == errc::bad_argument));
  BOOST_TEST(log.error().message.find("a run with env.math.group_size = 4, the config says 8") !=
                 std::string::npos,
             log.error().message);
  BOOST_TEST(here.written() == before);
}

// An episode of a step that is made again must not be rejected now.
BOOST_AUTO_TEST_CASE(what_is_rejected_may_change_once_every_step_is_durable) {
  config_fixture here;
  here.who.settings = "vocab_size = 100\n";
  {
    auto log = here.open().value();
    log_commit record;
    record.step = 1;
    auto &entry = record.groups.emplace_back();
    entry.key = {"run", "env", "task", "group"};
    entry.states = {0};
    const auto header = parse<wire::GroupHeader>(planner_fixture::header(1, 0)).value();
    record.annotations = {annotate(header, env_config{}, {}).value().annotations};
    const auto written = log->write(record);
    BOOST_REQUIRE_MESSAGE(written, written.error().message);
  }
  here.change("vocab_size = 50\n");
  BOOST_TEST(here.open().error().message.find("a run with vocab_size = 100, the config says 50") !=
             std::string::npos);
  here.change("vocab_size = 100\n");
  {
    auto log = here.open().value();
    BOOST_REQUIRE(log->write(log_trained{1, 0, 0, 0}));
    BOOST_REQUIRE(log->write(log_durable{1}));
  }
  here.change("vocab_size = 50\n");
  BOOST_TEST(here.open().has_value());
}

BOOST_AUTO_TEST_CASE(before_anything_has_ended_every_setting_may_change) {
  config_fixture here;
  BOOST_REQUIRE(here.open());
  here.change("batch.traces = 2\nenv.math.group_size = 8\n");
  BOOST_TEST(here.open().has_value());
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
} // namespace millrace::test
