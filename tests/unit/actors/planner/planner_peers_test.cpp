// SPDX-License-Identifier: Apache-2.0
// A planner whose peers come, go, and do work again that others had done before they were lost.
#include "tests/unit/actors/planner/planner_fixture.hpp"

namespace millrace::test {
namespace {

using bins = std::vector<bin_ref>;

/// The places of bins, in the order in which they were given.
bins places(const std::vector<pack_bin> &orders) {
  bins out;
  for (const auto &order : orders) {
    const auto plan = parse<wire::BinPlan>(order.plan).value();
    out.push_back({plan->step(), plan->rank(), plan->index(), 0});
  }
  return out;
}

std::vector<group_ref> only(std::uint64_t ordinal) { return {{ordinal, 0}}; }

BOOST_FIXTURE_TEST_SUITE(repeated_groups, planner_fixture)

BOOST_AUTO_TEST_CASE(a_group_that_comes_twice_is_entered_once_and_counted_as_a_repeat) {
  begin();
  group(0);
  group(0);
  end(1);
  BOOST_TEST(counters->repeats == 1U);
  stage(1);
  train(1);
  BOOST_TEST((*finished().entries)[episode_state::trained] == 2U);
  BOOST_TEST(finished().entries->total() == 2U);
}

BOOST_AUTO_TEST_CASE(an_assembler_hears_every_time_that_its_scores_came) {
  begin();
  group(0);
  group_moved(0);
  BOOST_REQUIRE_EQUAL(assembler.got<groups_received>().size(), 1);
  BOOST_TEST((assembler.got<groups_received>()[0].groups == only(0)));
  BOOST_TEST(other_assembler.got<groups_received>().size() == 1U);
}

BOOST_AUTO_TEST_CASE(a_committed_group_that_comes_again_is_answered_settled) {
  begin();
  group(0);
  stage(1);
  group_moved(0);
  BOOST_REQUIRE_EQUAL(other_assembler.got<groups_settled>().size(), 1);
  BOOST_TEST((other_assembler.got<groups_settled>()[0].groups == only(0)));
}

BOOST_AUTO_TEST_CASE(a_trained_group_that_comes_again_is_answered_settled) {
  begin();
  group(0);
  stage(1);
  train(1);
  group_moved(0);
  world.pass_time();
  BOOST_TEST(other_assembler.got<groups_settled>().size() == 1U);
}

BOOST_AUTO_TEST_CASE(a_group_without_kept_samples_that_comes_again_is_answered_settled) {
  begin();
  score_from(assembler.actor(), 0, header(1, 1));
  world.pass_time();
  score_from(other_assembler.actor(), 0, header(1, 1));
  BOOST_TEST(other_assembler.got<groups_settled>().size() == 1U);
}

BOOST_AUTO_TEST_CASE(a_group_that_waits_for_its_step_is_not_settled_when_it_comes_again) {
  begin();
  group(1);
  group_moved(1);
  BOOST_TEST(other_assembler.got<groups_settled>().empty());
}

BOOST_AUTO_TEST_CASE(a_group_that_moves_while_it_waits_is_fetched_from_where_it_is) {
  begin();
  group(1);
  group_moved(1);
  group(0);
  const auto &orders = packer.got<pack_bin>();
  BOOST_TEST((places(orders) == bins{{1, 0, 0}, {1, 1, 0}, {2, 0, 0}, {2, 1, 0}}));
  BOOST_TEST((orders[0].groups.at(0).assembler == peer(assembler.actor())));
  BOOST_TEST((orders[2].groups.at(0).assembler == peer(other_assembler.actor())));
}

BOOST_AUTO_TEST_CASE(a_group_that_moves_while_it_is_packed_sends_the_bins_that_need_it_again) {
  begin();
  group(0);
  group(1);
  packer.got<pack_bin>().clear();
  group_moved(1);
  const auto &again = packer.got<pack_bin>();
  BOOST_TEST((places(again) == bins{{2, 0, 0}, {2, 1, 0}}));
  for (const auto &order : again)
    BOOST_TEST((order.groups.at(0).assembler == peer(other_assembler.actor())));
}

BOOST_AUTO_TEST_CASE(a_bin_that_is_staged_is_not_sent_again_when_its_group_moves) {
  begin();
  group(0);
  stage(1, 0);
  packer.got<pack_bin>().clear();
  group_moved(0);
  BOOST_TEST((places(packer.got<pack_bin>()) == bins{{1, 1, 0}}));
}

BOOST_AUTO_TEST_CASE(a_group_that_comes_again_from_where_it_is_moves_nothing) {
  begin();
  group(0);
  packer.got<pack_bin>().clear();
  group(0);
  BOOST_TEST(packer.got<pack_bin>().empty());
}

// A copy elsewhere ended by its deadline, and offers no bytes.
BOOST_AUTO_TEST_CASE(a_tombstone_for_a_group_that_is_here_moves_nothing) {
  begin();
  group(1); // waits for its turn
  world.tell(*subject, group_tombstone{{1, 0},
                                       header(1, 0, wire::EpisodeStatus::Ok, 1),
                                       tombstone_reason::overdue,
                                       "1 of 2 came",
                                       other_assembler.actor()});
  BOOST_TEST(other_assembler.got<groups_received>().size() == 1U);
  group(0);
  for (const auto &order : packer.got<pack_bin>())
    BOOST_TEST((order.groups.at(0).assembler == peer(assembler.actor())));
  BOOST_TEST(counters->repeats == 1U);
}

// The answer to a copy that is lost, from a slow scorer.
BOOST_AUTO_TEST_CASE(a_late_answer_for_a_lost_assembler_moves_nothing) {
  begin();
  const auto lost = named("assembler-0", assembler.actor());
  const auto other = named("assembler-1", other_assembler.actor());
  const auto head = header(1, 0, wire::EpisodeStatus::Ok, 1);
  score_from(lost, 1, head); // waits for its turn
  world.tell(*subject, peer_down{role::assembler, lost, "lost"});
  score_from(other, 1, head);
  score_from(lost, 1, head);
  world.tell(*subject, group_held{{1, 0}, lost});
  group(0);
  stage(1);
  BOOST_REQUIRE_EQUAL(packer.got<pack_bin>().size(), 4U);
  for (std::size_t i = 2; i < 4; ++i)
    BOOST_TEST((packer.got<pack_bin>()[i].groups.at(0).assembler == other));
}

// Its reader may have given it to another one before, and sends it nowhere again.
BOOST_AUTO_TEST_CASE(what_no_step_has_committed_is_asked_for_when_its_assembler_is_lost) {
  begin();
  up(role::assembler, "assembler-1", other_assembler.actor());
  const auto lost = named("assembler-0", assembler.actor());
  for (const std::uint64_t ordinal : {0U, 2U}) // one is packed, one waits for its turn
    score_from(lost, ordinal, header(1, 0, wire::EpisodeStatus::Ok, ordinal));
  world.tell(*subject, peer_down{role::assembler, lost, "lost"});
  std::set<group_ref> asked;
  for (const auto &one : other_assembler.got<groups_wanted>()) {
    BOOST_TEST(!one.scored);
    asked.insert(one.groups.begin(), one.groups.end());
  }
  BOOST_TEST((asked == std::set<group_ref>{{0, 0}, {2, 0}}));
}

// Where it was, a stale copy may lie.
BOOST_AUTO_TEST_CASE(a_group_that_moved_is_settled_at_every_assembler) {
  begin();
  up(role::assembler, "assembler-1", other_assembler.actor());
  group(0);
  group_moved(0);
  stage(1);
  BOOST_TEST(assembler.got<groups_settled>().size() == 1U);
  BOOST_TEST(other_assembler.got<groups_settled>().size() == 1U);
}

BOOST_AUTO_TEST_SUITE_END()

struct two_packers : planner_fixture {
  packer_probe second{world};

  two_packers() {
    begin();
    up(role::packer, "packer-1", second.actor());
  }
  void forget_orders() {
    packer.got<pack_bin>().clear();
    second.got<pack_bin>().clear();
  }
  void lose(std::string name, const caf::actor &who) {
    world.tell(*subject, peer_down{role::packer, named(std::move(name), who), "a test"});
  }
  void drain_one(std::string name, const caf::actor &who) {
    world.tell(*subject, peer_draining{role::packer, named(std::move(name), who)});
  }
};

BOOST_FIXTURE_TEST_SUITE(packers_come_and_go, two_packers)

BOOST_AUTO_TEST_CASE(whole_ranks_are_shared_out_while_there_are_as_many_as_packers) {
  group(0);
  group(1);
  BOOST_TEST((places(packer.got<pack_bin>()) == bins{{1, 0, 0}, {2, 0, 0}}));
  BOOST_TEST((places(second.got<pack_bin>()) == bins{{1, 1, 0}, {2, 1, 0}}));
}

BOOST_AUTO_TEST_CASE(bins_of_a_lost_packer_go_to_another_and_only_they) {
  group(0);
  group(1);
  forget_orders();
  lose("packer-1", second.actor());
  BOOST_TEST((places(packer.got<pack_bin>()) == bins{{1, 1, 0}, {2, 1, 0}}));
  BOOST_TEST(second.got<pack_bin>().empty());
}

BOOST_AUTO_TEST_CASE(bins_of_a_lost_packer_that_are_staged_are_not_gathered_again) {
  group(0);
  group(1);
  stage(1, 1);
  forget_orders();
  lose("packer-1", second.actor());
  BOOST_TEST((places(packer.got<pack_bin>()) == bins{{2, 1, 0}}));
}

BOOST_AUTO_TEST_CASE(a_draining_packer_gets_nothing_new_and_keeps_what_it_has) {
  group(0);
  forget_orders();
  drain_one("packer-1", second.actor());
  BOOST_TEST(packer.got<pack_bin>().empty());
  group(1);
  BOOST_TEST((places(packer.got<pack_bin>()) == bins{{2, 0, 0}, {2, 1, 0}}));
  BOOST_TEST(second.got<pack_bin>().empty());
}

BOOST_AUTO_TEST_CASE(bins_of_a_lost_packer_wait_for_one_that_does_not_drain) {
  group(0);
  forget_orders();
  drain_one("packer-0", packer.actor());
  lose("packer-1", second.actor());
  BOOST_TEST(packer.got<pack_bin>().empty());
  packer_probe third(world);
  up(role::packer, "packer-2", third.actor());
  BOOST_TEST((places(third.got<pack_bin>()) == bins{{1, 1, 0}}));
}

// Those of the first go to the second while nobody else is there.
BOOST_AUTO_TEST_CASE(bins_that_nobody_has_move_with_their_groups) {
  group(0);
  lose("packer-0", packer.actor());
  lose("packer-1", second.actor());
  group_moved(0);
  packer_probe third(world);
  up(role::packer, "packer-2", third.actor());
  BOOST_TEST((places(third.got<pack_bin>()) == bins{{1, 0, 0}, {1, 1, 0}}));
  for (const auto &order : third.got<pack_bin>())
    BOOST_TEST((order.groups.at(0).assembler == peer(other_assembler.actor())));
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_FIXTURE_TEST_SUITE(who_must_be_there, planner_fixture)

BOOST_AUTO_TEST_CASE(without_packers_no_step_is_cut_until_one_comes) {
  begin_alone();
  ranks_up();
  group(0);
  BOOST_TEST(feeder0.got<stage_step>().empty());
  up(role::packer, "packer-0", packer.actor());
  BOOST_TEST(feeder0.got<stage_step>().size() == 1U);
  BOOST_TEST(packer.got<pack_bin>().size() == 2U);
}

BOOST_AUTO_TEST_CASE(without_every_rank_no_step_is_cut) {
  begin_alone();
  up(role::packer, "packer-0", packer.actor());
  up(role::trainer, "feeder-1", feeder1.actor());
  group(0);
  BOOST_TEST(packer.got<pack_bin>().empty());
  up(role::trainer, "feeder-0", feeder0.actor());
  BOOST_TEST(packer.got<pack_bin>().size() == 2U);
}

BOOST_AUTO_TEST_CASE(a_late_reader_hears_how_far_it_may_go_and_that_there_is_hunger) {
  begin_alone();
  up(role::packer, "packer-0", packer.actor());
  ranks_up();
  up(role::env_reader, "env-reader-0", reader.actor());
  BOOST_TEST(permitted() == 4U);
  BOOST_REQUIRE_EQUAL(reader.got<hunger>().size(), 1);
  BOOST_TEST(reader.got<hunger>()[0].hungry);
}

BOOST_AUTO_TEST_CASE(a_reader_beyond_those_of_the_config_ends_the_run_with_its_name) {
  begin();
  up(role::env_reader, "env-reader-1", reader.actor());
  BOOST_TEST(failure().find("env-reader-1") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_rank_beyond_those_of_the_config_ends_the_run_with_its_name) {
  begin();
  up(role::trainer, "feeder-2", feeder0.actor());
  BOOST_TEST(failure().find("feeder-2") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_settled_group_is_forgotten_by_the_reader_that_read_it_and_no_other) {
  options.readers = 2;
  reader_probe second(world);
  begin();
  up(role::env_reader, "env-reader-1", second.actor());
  group(0);
  group(1);
  stage(1);
  BOOST_REQUIRE_EQUAL(reader.got<groups_settled>().size(), 1);
  BOOST_TEST((reader.got<groups_settled>()[0].groups == only(0)));
  BOOST_TEST(second.got<groups_settled>().empty());
  stage(2);
  BOOST_TEST(reader.got<groups_settled>().size() == 1U);
  BOOST_REQUIRE_EQUAL(second.got<groups_settled>().size(), 1);
  BOOST_TEST((second.got<groups_settled>()[0].groups == only(1)));
}

BOOST_AUTO_TEST_CASE(what_a_rank_tells_goes_to_every_rank) {
  begin();
  world.tell(*subject, rank_notice{"0/1", "address"});
  for (auto *feeder : {&feeder0, &feeder1}) {
    BOOST_REQUIRE_EQUAL(feeder->got<rank_notice>().size(), 1);
    BOOST_TEST(feeder->got<rank_notice>()[0].key == "0/1");
    BOOST_TEST(feeder->got<rank_notice>()[0].value == "address");
  }
}

BOOST_AUTO_TEST_CASE(a_late_rank_hears_what_others_have_told) {
  begin_alone();
  up(role::trainer, "feeder-0", feeder0.actor());
  world.tell(*subject, rank_notice{"0/1", "address"});
  world.tell(*subject, rank_notice{"0/2", "another"});
  up(role::trainer, "feeder-1", feeder1.actor());
  BOOST_REQUIRE_EQUAL(feeder1.got<rank_notice>().size(), 2);
  BOOST_TEST(feeder1.got<rank_notice>()[0].key == "0/1");
  BOOST_TEST(feeder0.got<rank_notice>().size() == 2U);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
} // namespace millrace::test
