// SPDX-License-Identifier: Apache-2.0
// Groups of which some failed, that are too old, or that give nothing to train.
#include "tests/support/quiet_log.hpp"
#include "tests/unit/actors/planner/planner_fixture.hpp"

namespace millrace::test {
namespace {

struct groups_fixture : planner_fixture {
  /// Episodes with these rewards that were sampled with these versions; -1: it errored, -2: it was
  /// cancelled.
  static frame group_header(std::uint64_t ordinal, const std::vector<double> &rewards,
                            const std::vector<std::uint64_t> &versions = {}) {
    std::vector<frame_data> all;
    for (std::size_t i = 0; i < rewards.size(); ++i) {
      all.push_back(
          episode_of(fmt::format("{}", i), rewards[i], {prompt(-1, 3), turn(0, {1, 1, 1})}));
      if (rewards[i] < 0)
        all.back().finish->status =
            rewards[i] == -1 ? wire::EpisodeStatus::Errored : wire::EpisodeStatus::Cancelled;
      if (!versions.empty())
        all.back().first_version = all.back().last_version = versions[i];
    }
    auto members = group_of(all);
    members.ordinal = ordinal;
    return header_of(members).bytes();
  }
  void aged_group(std::uint64_t ordinal, std::uint64_t first, std::uint64_t second) {
    score(ordinal, group_header(ordinal, {1, 0}, {first, second}));
  }
  void limit_staleness(std::uint64_t versions) {
    options.staleness = {{.fresh = false, .offset = 0}, versions};
  }
  void tombstone(std::uint64_t ordinal, tombstone_reason reason) {
    world.tell(*subject, group_tombstone{{ordinal, 0},
                                         header(1, 0, wire::EpisodeStatus::Ok, ordinal),
                                         reason,
                                         "why",
                                         assembler.actor()});
  }
  /// Two episodes whose prompts fill the whole sequence.
  static frame overlong(std::uint64_t ordinal) {
    std::vector<frame_data> all;
    for (const double reward : {1, 0})
      all.push_back(
          episode_of(fmt::format("{}", reward), reward, {prompt(-1, 64), turn(0, {1, 1})}));
    auto members = group_of(all);
    members.ordinal = ordinal;
    return header_of(members, 64).bytes();
  }
  /// Too long for a step, with an image of which no token is: it cannot be cut.
  static frame_data uncuttable() {
    auto shown = prompt(-1, 66);
    shown.tensors = {array_of("pixel_values", dtype::float32, {4, 6}), grid_of({1, 2, 2})};
    shown.mm_token_type_ids = std::vector<std::uint8_t>(66, 0);
    return episode_of("a", 1, {std::move(shown), turn(0, {1, 1})});
  }
  static frame unplannable(std::uint64_t ordinal) {
    auto members = group_of({uncuttable(), episode_of("b", 0, {prompt(-1, 3), turn(0, {1, 1})})});
    members.ordinal = ordinal;
    return header_of(members).bytes();
  }
  void score_unit(std::uint64_t ordinal, frame head) {
    env_config env;
    env.scoring = group_scoring::unit;
    auto annotations =
        annotate(parse<wire::GroupHeader>(head).value(), env, {}).value().annotations;
    world.tell(*subject, group_scored{{ordinal, 0}, head, annotations, assembler.actor()});
  }
  /// Ranks do all that they can.
  void train_all(std::uint64_t steps) {
    for (std::uint64_t step = 1; step <= steps; ++step) {
      stage(step);
      train(step);
    }
  }
  std::uint64_t entered(episode_state end) { return (*finished().entries)[end]; }
};

BOOST_FIXTURE_TEST_SUITE(planner_groups, groups_fixture)

// ---- members that failed

BOOST_AUTO_TEST_CASE(survivors_of_a_group_are_trained) {
  options.batch.traces = 6;
  begin();
  score(0, group_header(0, {-1, -2, 1, 1, 0, 0, 1, 0}));
  train_all(1);
  end(1);
  BOOST_TEST(entered(episode_state::trained) == 6U);
  BOOST_TEST(entered(episode_state::errored) == 1U);
  BOOST_TEST(entered(episode_state::cancelled) == 1U);
}

// Its advantage is zero: nothing of it is left.
BOOST_AUTO_TEST_CASE(a_single_survivor_makes_no_step) {
  begin();
  score(0, group_header(0, {-1, -1, -1, -1, 1, -1, -1, -1}));
  end(1);
  BOOST_TEST(packer.got<pack_bin>().empty());
  BOOST_TEST(entered(episode_state::pruned) == 1U);
  BOOST_TEST(entered(episode_state::errored) == 7U);
}

BOOST_AUTO_TEST_CASE(a_group_of_errored_episodes_keeps_no_step_from_the_next) {
  begin();
  score(0, group_header(0, std::vector<double>(8, -1)));
  group(1);
  train_all(1);
  end(2);
  BOOST_TEST(entered(episode_state::errored) == 8U);
  BOOST_TEST(entered(episode_state::trained) == 2U);
}

BOOST_AUTO_TEST_CASE(a_void_group_and_a_dropped_one_go_to_no_step_and_keep_nobody_waiting) {
  begin();
  tombstone(0, tombstone_reason::stale);
  tombstone(1, tombstone_reason::dropped);
  tombstone(2, tombstone_reason::overdue);
  group(3);
  train_all(1);
  end(4);
  BOOST_TEST(entered(episode_state::stale) == 2U);
  BOOST_TEST(entered(episode_state::group_dropped) == 2U);
  BOOST_TEST(entered(episode_state::expired) == 2U);
  BOOST_TEST(entered(episode_state::trained) == 2U);
  BOOST_TEST(finished().entries->overdue.size() == 1U);
}

BOOST_AUTO_TEST_CASE(where_every_episode_errored_no_batch_leaves_and_all_are_counted) {
  options.batch.traces = 128;
  begin();
  for (std::uint64_t i = 0; i < 16; ++i)
    score(i, group_header(i, std::vector<double>(8, -1)));
  end(16);
  BOOST_TEST(packer.got<pack_bin>().empty());
  BOOST_TEST(entered(episode_state::errored) == 128U);
  BOOST_TEST(finished().steps.empty());
}

// 16 groups are wanted, 3 are refused, and the source has no more.
BOOST_AUTO_TEST_CASE(what_is_refused_counts_as_done_and_the_last_batch_ships_short) {
  options.batch.traces = 32;
  options.plan.seq_len = 1024; // one micro batch for each rank
  begin();
  for (std::uint64_t i = 0; i < 16; ++i)
    if (i % 5 == 1)
      score(i, header(0, 0, wire::EpisodeStatus::Rejected, i));
    else
      group(i);
  BOOST_TEST(packer.got<pack_bin>().empty());
  end(16);
  train_all(1);
  BOOST_TEST(entered(episode_state::trained) == 26U);
  BOOST_TEST(entered(episode_state::rejected) == 6U);
}

// ---- second and wrong answers

BOOST_AUTO_TEST_CASE(a_second_answer_changes_nothing_wherever_the_group_is) {
  options.max_steps = 1;
  begin();
  group(1); // waits for its turn
  group(1);
  group(0);
  group(0); // is packed
  stage(1);
  group(0); // is committed
  tombstone(0, tombstone_reason::unscored);
  train(1);
  BOOST_TEST(counters->repeats == 3U);
  BOOST_TEST(packed() == (std::vector<std::uint64_t>{0}), boost::test_tools::per_element());
  BOOST_TEST(entered(episode_state::trained) == 2U);
  BOOST_TEST(entered(episode_state::held) == 2U);
}

BOOST_AUTO_TEST_CASE(an_answer_for_more_or_fewer_traces_than_asked_ends_the_run_with_both_counts) {
  for (const std::size_t given : {1U, 7U, 9U, 0U}) {
    begin();
    supervisor.got<run_failed>().clear();
    const auto asked = group_header(0, {1, 0, 1, 0, 1, 0, 1, 0});
    std::vector<double> others(given, 0);
    if (given > 0)
      others[0] = 1;
    const auto other = group_header(0, others);
    auto annotations =
        annotate(parse<wire::GroupHeader>(other).value(), env_config{}, {}).value().annotations;
    world.tell(*subject, group_scored{{0, 0}, asked, annotations, assembler.actor()});
    BOOST_TEST(failure().find(fmt::format("algorithm grpo answers for {} traces", given)) !=
               std::string::npos);
    BOOST_TEST(supervisor.got<run_failed>()[0].what.message.ends_with("has 8 to be scored"));
  }
}

BOOST_AUTO_TEST_CASE(whatever_a_second_answer_says_the_first_one_counts) {
  begin();
  group(0);
  const auto other = parse<wire::GroupHeader>(group_header(5, {1, 0, 1})).value();
  world.tell(*subject, group_scored{{0, 0},
                                    group_header(0, {1, 0}),
                                    annotate(other, env_config{}, {}).value().annotations,
                                    assembler.actor()});
  BOOST_TEST(supervisor.got<run_failed>().empty());
  BOOST_TEST(counters->repeats == 1U);
}

BOOST_AUTO_TEST_CASE(a_group_under_the_number_of_another_ends_the_run_with_both) {
  begin();
  score(0, group_header(5, {1, 0}));
  BOOST_TEST(failure() == "what came for group 0 is group env/task/group of run run (5)");
}

BOOST_AUTO_TEST_CASE(an_answer_for_a_branch_twice_ends_the_run) {
  begin();
  // A trace of two branches, and the answer for a trace of one.
  const auto forked = [](bool both) {
    std::vector<node_data> nodes{prompt(-1, 3), turn(0, {1, 1})};
    if (both)
      nodes.push_back(turn(0, {1}));
    auto members =
        group_of({episode_of("a", 1, nodes), episode_of("b", 0, {prompt(-1, 3), turn(0, {1})})});
    members.ordinal = 0;
    return header_of(members);
  };
  world.tell(*subject, group_scored{{0, 0},
                                    forked(true).bytes(),
                                    annotate(forked(false), env_config{}, {}).value().annotations,
                                    assembler.actor()});
  BOOST_TEST(failure() == "annotations have 1 samples for the 2 branches of trace 0 of episode 0");
}

BOOST_AUTO_TEST_CASE(an_answer_for_another_group_ends_the_run_with_both_names) {
  begin();
  const auto other = parse<wire::GroupHeader>(group_header(5, {1, 0})).value();
  world.tell(*subject, group_scored{{0, 0},
                                    group_header(0, {1, 0}),
                                    annotate(other, env_config{}, {}).value().annotations,
                                    assembler.actor()});
  BOOST_TEST(failure().find("(5) in place of") != std::string::npos);
}

// ---- staleness

BOOST_AUTO_TEST_CASE(what_is_too_old_is_not_packed_and_the_rest_of_its_group_is) {
  limit_staleness(0);
  options.batch.traces = 1;
  begin();
  aged_group(0, 0, 0);
  train_all(1);
  aged_group(1, 0, 1); // step 2 trains version 1
  stage(2);
  train(2);
  end(2);
  BOOST_TEST(entered(episode_state::trained) == 3U);
  BOOST_TEST(entered(episode_state::stale) == 1U);
  const auto &report = finished().steps.at(1);
  BOOST_TEST((report.staleness == std::vector<staleness_count>{{0, 1}}));
  BOOST_TEST((report.kept_lengths == sample_lengths{1, 6, 6}));
  BOOST_TEST((report.stale_lengths == sample_lengths{1, 6, 6}));
}

BOOST_AUTO_TEST_CASE(the_time_in_the_queue_counts) {
  limit_staleness(1);
  begin();
  for (std::uint64_t i = 0; i < 4; ++i)
    aged_group(i, 0, 0); // all are there before the first step is trained
  end(4);
  train_all(2);
  BOOST_TEST(entered(episode_state::trained) == 4U);
  BOOST_TEST(entered(episode_state::stale) == 4U);
  BOOST_TEST((finished().steps.at(1).staleness == std::vector<staleness_count>{{1, 2}}));
}

BOOST_AUTO_TEST_CASE(groups_of_which_nothing_is_left_are_in_the_report_of_the_step_they_missed) {
  limit_staleness(0);
  begin();
  aged_group(0, 0, 0);
  aged_group(1, 0, 0); // too old for step 2
  aged_group(2, 1, 1);
  end(3);
  train_all(2);
  BOOST_TEST(finished().steps.size() == 2U);
  BOOST_TEST((finished().steps.at(1).stale_lengths == sample_lengths{2, 12, 6}));
  BOOST_TEST((supervisor.got<step_done>().at(1).report.stale_lengths == sample_lengths{2, 12, 6}));
}

BOOST_AUTO_TEST_CASE(data_that_is_all_too_old_makes_no_step_and_lets_more_groups_begin) {
  limit_staleness(0);
  begin();
  aged_group(0, 0, 0);
  train_all(1);
  for (std::uint64_t i = 1; i < 20; ++i) {
    BOOST_TEST(permitted() > i);
    aged_group(i, 0, 0);
  }
  end(20);
  BOOST_TEST(finished().steps.size() == 1U);
  BOOST_TEST(entered(episode_state::stale) == 38U);
}

// A planner that starts again knows the version from its log.
BOOST_AUTO_TEST_CASE(the_limit_holds_after_a_start_at_any_step) {
  limit_staleness(2);
  options.keep = step_keep::durable;
  options.batch.traces = 1;
  begin();
  for (std::uint64_t i = 0; i < 6; ++i) {
    aged_group(i, i, i);
    stage(i + 1);
    train(i + 1);
  }
  world.pass_time();
  for (auto &rank : ranks)
    rank.next = 7;
  begin();
  aged_group(6, 4, 3); // step 7 trains version 6
  stage(7);
  train(7);
  end(7);
  BOOST_TEST(entered(episode_state::trained) == 13U);
  BOOST_TEST(entered(episode_state::stale) == 1U);
  for (const auto &report : finished().steps)
    for (const auto &one : report.staleness)
      BOOST_TEST(one.staleness <= 2U);
}

BOOST_AUTO_TEST_CASE(a_run_that_starts_again_reports_the_ages_of_all_its_steps) {
  limit_staleness(0);
  options.batch.traces = 1;
  begin();
  aged_group(0, 0, 0);
  aged_group(1, 0, 0);
  aged_group(2, 1, 0);
  stage(1);
  train(1);
  stage(2);
  train(2);
  world.pass_time();
  for (auto &rank : ranks)
    rank.next = 3;
  begin();
  end(3);
  const auto &report = finished().steps.at(1);
  BOOST_TEST((report.staleness == std::vector<staleness_count>{{0, 1}}));
  BOOST_TEST((report.stale_lengths == sample_lengths{3, 18, 6}));
  BOOST_TEST(finished().entries->longest_stale == 6U);
}

// What was judged for a step that is no more is judged for the one that takes it.
BOOST_AUTO_TEST_CASE(a_step_that_was_thrown_away_is_cut_again_as_it_was) {
  limit_staleness(0);
  begin();
  aged_group(0, 0, 0);
  aged_group(1, 1, 0);
  BOOST_TEST(packed() == (std::vector<std::uint64_t>{0}), boost::test_tools::per_element());
  end(2);
  world.tell(*subject, peer_down{role::trainer, named("feeder-1", feeder1.actor()), "lost"});
  world.tell(*subject, peer_down{role::trainer, named("feeder-0", feeder0.actor()), "lost"});
  packer.got<pack_bin>().clear();
  for (auto &rank : ranks)
    rank = {.rank = rank.rank, .next = 1};
  ranks_up();
  train_all(2);
  BOOST_TEST(entered(episode_state::trained) == 3U);
  BOOST_TEST(entered(episode_state::stale) == 1U);
}

// ---- the guard

BOOST_AUTO_TEST_CASE(data_that_gives_nothing_to_train_ends_the_run_and_says_what_it_was) {
  options.limits.max_empty_batches = 3;
  begin();
  group(0);
  train_all(1);
  score(1, group_header(1, {1, 1}));
  score(2, group_header(2, {-1, -1}));
  BOOST_TEST(supervisor.got<run_failed>().empty());
  score(3, group_header(3, {1, 1}));
  BOOST_TEST(failure() ==
             "nothing to train in 6 traces, 3 batches' worth "
             "(planner.max_empty_batches); episodes since step 1: pruned 4, errored 2");
}

BOOST_AUTO_TEST_CASE(a_trickle_of_samples_keeps_the_run_going) {
  options.limits.max_empty_batches = 3;
  options.batch.traces = 8;
  begin();
  for (std::uint64_t i = 0; i < 40; i += 10) {
    for (std::uint64_t j = 0; j < 9; ++j)
      score(i + j, group_header(i + j, {1, 1}));
    group(i + 9);
  }
  BOOST_TEST(supervisor.got<run_failed>().empty());
  BOOST_TEST(!packer.got<pack_bin>().empty());
}

BOOST_AUTO_TEST_CASE(data_that_is_all_too_old_is_nothing_to_train) {
  limit_staleness(0);
  options.limits.max_empty_batches = 2;
  begin();
  aged_group(0, 0, 0);
  train_all(1);
  aged_group(1, 0, 0);
  aged_group(2, 0, 0);
  BOOST_TEST(failure().ends_with("episodes since step 1: stale 4"));
}

BOOST_AUTO_TEST_CASE(steps_that_train_no_token_are_nothing_to_train) {
  options.limits.max_empty_batches = 2;
  begin();
  score(0, overlong(0));
  train_all(1);
  BOOST_TEST(supervisor.got<run_failed>().empty());
  score(1, overlong(1));
  stage(2);
  train(2);
  BOOST_TEST(failure().starts_with("nothing to train in 4 traces"));
}

BOOST_AUTO_TEST_CASE(samples_that_cannot_be_planned_are_nothing_to_train) {
  const quiet_log quiet;
  options.limits.max_empty_batches = 3;
  options.batch.traces = 1;
  begin();
  const auto one = [](std::uint64_t ordinal) {
    std::vector<frame_data> all{uncuttable(), episode_of("b", 0, {})};
    all[1].finish->status = wire::EpisodeStatus::Errored;
    auto members = group_of(all);
    members.ordinal = ordinal;
    return header_of(members).bytes();
  };
  env_config sft;
  sft.algorithm = "sft";
  for (std::uint64_t i = 0; i < 2; ++i) {
    const auto head = one(i);
    world.tell(
        *subject,
        group_scored{{i, 0},
                     head,
                     annotate(parse<wire::GroupHeader>(head).value(), sft, {}).value().annotations,
                     assembler.actor()});
  }
  BOOST_TEST(failure().starts_with("nothing to train in 4 traces"));
}

BOOST_AUTO_TEST_CASE(steps_under_way_are_trained_before_the_guard_ends_the_run) {
  options.limits.max_empty_batches = 1;
  begin();
  group(0);
  score(1, group_header(1, {1, 1}));
  score(2, group_header(2, {1, 1}));
  BOOST_TEST(supervisor.got<run_failed>().empty());
  train_all(1);
  BOOST_TEST(failure().starts_with("nothing to train in 4 traces"));
}

// ---- units

// Else a step that is cut anew after a crash would be another one.
BOOST_AUTO_TEST_CASE(a_unit_that_cannot_be_planned_never_counts_for_a_step) {
  begin();
  score_unit(0, unplannable(0));
  BOOST_TEST(packer.got<pack_bin>().empty());
  score_unit(1, group_header(1, {1, 0}));
  end(2);
  train_all(1);
  BOOST_TEST(packed() == (std::vector<std::uint64_t>{1}), boost::test_tools::per_element());
  BOOST_TEST(entered(episode_state::rejected) == 1U);
  BOOST_TEST(entered(episode_state::group_dropped) == 1U);
  BOOST_TEST(entered(episode_state::trained) == 2U);
}

// ---- progress

BOOST_AUTO_TEST_CASE(readers_hear_how_far_the_run_is_whenever_that_changes) {
  const auto told = [this] { return std::exchange(reader.got<planner_progress>(), {}); };
  begin();
  BOOST_TEST((told().back() == planner_progress{0, 1, 0}));
  group(0); // step 1 is packed
  BOOST_TEST((told().back() == planner_progress{0, 2, 0}));
  world.tell(*subject, permit_wanted{0, 99});
  BOOST_TEST(told().empty());
  group(1);
  group(2); // waits
  BOOST_TEST((told().back() == planner_progress{0, 3, 1}));
  stage(1);
  train(1);
  BOOST_TEST((told().back() == planner_progress{1, 4, 0}));
  BOOST_TEST(counters->version == 1U);
  BOOST_TEST(counters->next_step == 4U);
}

BOOST_AUTO_TEST_CASE(a_reader_that_comes_late_hears_how_far_the_run_is) {
  begin();
  group(0);
  reader.got<planner_progress>().clear();
  up(role::env_reader, "env-reader-0", reader.actor());
  BOOST_REQUIRE(!reader.got<planner_progress>().empty());
  BOOST_TEST((reader.got<planner_progress>()[0] == planner_progress{0, 2, 0}));
}

// ---- the cut

BOOST_AUTO_TEST_CASE(the_group_that_reaches_the_count_goes_in_whole) {
  options.batch.traces = 3;
  begin();
  for (std::uint64_t i = 0; i < 2; ++i)
    group(i);
  train_all(1);
  end(2);
  BOOST_TEST(finished().steps.at(0).traces == 4U);
}

BOOST_AUTO_TEST_CASE(what_becomes_of_a_short_last_batch_is_said_once) {
  const auto said = [this](last_batch last, std::uint64_t groups) {
    options.batch = {.traces = 4, .last = last};
    supervisor.got<run_note>().clear();
    begin();
    for (std::uint64_t i = 0; i < groups; ++i)
      group(i);
    end(groups);
    world.tell(*subject, permit_wanted{0, groups}); // another look around
    std::vector<std::string> out;
    for (const auto &note : supervisor.got<run_note>())
      out.push_back(note.text);
    return out;
  };
  using lines = std::vector<std::string>;
  BOOST_TEST((said(last_batch::ship, 1) ==
              lines{"data has ended: the last batch has 2 of 4 traces; it is a step of its own "
                    "(batch.last = ship)"}));
  BOOST_TEST((said(last_batch::hold, 1) ==
              lines{"data has ended: the last batch has 2 of 4 traces; it is held, and nobody is "
                    "trained on it (batch.last = hold)"}));
  BOOST_TEST(said(last_batch::ship, 2).empty());
}

BOOST_AUTO_TEST_CASE(tokens_are_counted_after_the_cut_at_seq_len) {
  options.batch.traces = 0;
  options.batch.tokens = 12;
  options.plan.seq_len = 5; // each sample of 6 keeps 5
  begin();
  score(0, group_header(0, {1, 0}));
  BOOST_TEST(packer.got<pack_bin>().empty());
  score(1, group_header(1, {1, 0}));
  BOOST_TEST(!packer.got<pack_bin>().empty());
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
} // namespace millrace::test
