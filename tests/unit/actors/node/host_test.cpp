// SPDX-License-Identifier: Apache-2.0
#include "actors/node/host.hpp"

#include "tests/unit/actors/node/host_fixture.hpp"

namespace millrace::test {
namespace {

using enum process_state;

const std::string lost = "lost: nobody has heard of it for link.timeout";

struct one_scorer : host_fixture {
  process_entry scorer(std::uint64_t incarnation, process_state state) const {
    return entry(role::scorer, "scorer-1", incarnation, state);
  }
  /// A scorer is there, has had work, and so has a link.
  void begin_with_scorer() {
    begin();
    view({scorer(7, alive)});
    tell(office->find({"scorer-1", 7}), hunger{true});
    link("scorer-1", 7, link_state::up);
    BOOST_TEST((stage.take() == lines{"up scorer-1 7"}));
  }
};

BOOST_FIXTURE_TEST_SUITE(who_is_there, one_scorer)

BOOST_AUTO_TEST_CASE(a_process_that_registers_is_announced_once) {
  begin();
  view({scorer(7, alive)});
  view({scorer(7, alive)});
  BOOST_TEST((stage.take() == lines{"up scorer-1 7"}));
}

BOOST_AUTO_TEST_CASE(stages_hear_only_of_those_that_they_work_with) {
  begin();
  view({entry(role::packer, "packer-0", 8), entry(role::trainer, "trainer-0", 9)});
  BOOST_TEST(stage.take().empty());
}

BOOST_AUTO_TEST_CASE(a_process_is_not_its_own_neighbour) {
  begin();
  auto self = entry(role::scorer, "here", 5);
  view({self});
  BOOST_TEST(stage.take().empty());
}

BOOST_AUTO_TEST_CASE(who_has_ended_before_it_was_known_is_not_announced) {
  begin();
  view({scorer(7, gone), entry(role::scorer, "scorer-2", 8, left)});
  BOOST_TEST(stage.take().empty());
}

// Only the way from it to the directory is broken.
BOOST_AUTO_TEST_CASE(one_that_the_directory_holds_for_gone_stays_while_its_link_is_up) {
  begin_with_scorer();
  view({scorer(7, gone)});
  BOOST_TEST(stage.take().empty());
  view({scorer(7, alive)}); // it has come back
  link("scorer-1", 7, link_state::down);
  BOOST_TEST(stage.take().empty());
}

BOOST_AUTO_TEST_CASE(one_whose_link_is_down_stays_while_the_directory_holds_it_for_alive) {
  begin_with_scorer();
  link("scorer-1", 7, link_state::down);
  view({scorer(7, alive)});
  BOOST_TEST(stage.take().empty());
}

BOOST_AUTO_TEST_CASE(one_that_is_gone_and_whose_link_goes_down_is_down) {
  begin_with_scorer();
  view({scorer(7, gone)});
  link("scorer-1", 7, link_state::down);
  BOOST_TEST((stage.take() == lines{"down scorer-1 7: " + lost}));
}

BOOST_AUTO_TEST_CASE(one_whose_link_is_down_and_that_is_gone_then_is_down) {
  begin_with_scorer();
  link("scorer-1", 7, link_state::down);
  view({scorer(7, gone)});
  BOOST_TEST((stage.take() == lines{"down scorer-1 7: " + lost}));
}

BOOST_AUTO_TEST_CASE(one_that_has_left_is_down_whatever_its_link_says) {
  begin_with_scorer();
  view({scorer(7, left)});
  BOOST_TEST((stage.take() == lines{"down scorer-1 7: left"}));
}

BOOST_AUTO_TEST_CASE(one_that_was_replaced_is_down_before_the_next_one_is_up) {
  begin_with_scorer();
  view({scorer(7, gone), scorer(8, alive)});
  BOOST_TEST(
      (stage.take() == lines{"down scorer-1 7: replaced by a later start", "up scorer-1 8"}));
}

BOOST_AUTO_TEST_CASE(a_link_that_finds_another_incarnation_is_enough) {
  begin_with_scorer();
  link("scorer-1", 7, link_state::replaced);
  BOOST_TEST((stage.take() == lines{"down scorer-1 7: replaced by a later start"}));
  view({scorer(8, alive)});
  BOOST_TEST((stage.take() == lines{"up scorer-1 8"}));
}

BOOST_AUTO_TEST_CASE(late_words_of_an_incarnation_that_was_replaced_change_nothing) {
  begin_with_scorer();
  view({scorer(8, alive)});
  stage.take();
  view({scorer(7, gone)});
  view({scorer(7, alive)});
  link("scorer-1", 7, link_state::down);
  link("scorer-1", 7, link_state::replaced);
  BOOST_TEST(stage.take().empty());
}

// Others do its work already.
BOOST_AUTO_TEST_CASE(an_incarnation_that_is_down_does_not_come_back) {
  begin_with_scorer();
  view({scorer(7, gone)});
  link("scorer-1", 7, link_state::down);
  stage.take();
  view({scorer(7, alive)});
  BOOST_TEST(stage.take().empty());
  view({scorer(9, alive)});
  BOOST_TEST((stage.take() == lines{"up scorer-1 9"}));
}

// Nothing was sent to it yet: nobody here knows whether it is there.
BOOST_AUTO_TEST_CASE(one_that_only_the_directory_could_see_is_down_when_no_link_to_it_comes_up) {
  options.lease = std::chrono::milliseconds(5);
  begin();
  const auto reached = entry(role::scorer, "scorer-2", 8, gone);
  view({scorer(7, alive), entry(role::scorer, "scorer-2", 8)});
  stage.take();
  view({scorer(7, gone), reached});
  BOOST_TEST(stage.take().empty());
  BOOST_TEST(office->has_link("scorer-1")); // it is tried
  link("scorer-2", 8, link_state::up);
  lines heard;
  BOOST_TEST(tick_until([&] {
    heard = stage.take();
    return !heard.empty();
  }));
  BOOST_TEST((heard == lines{"down scorer-1 7: " + lost}));
}

BOOST_AUTO_TEST_CASE(draining_is_announced_once) {
  begin_with_scorer();
  view({scorer(7, draining)});
  view({scorer(7, draining)});
  BOOST_TEST((stage.take() == lines{"draining scorer-1 7"}));
  view({scorer(7, left)});
  BOOST_TEST((stage.take() == lines{"down scorer-1 7: left"}));
}

BOOST_AUTO_TEST_CASE(one_that_drains_when_it_becomes_known_is_up_and_draining) {
  begin();
  view({scorer(7, draining)});
  BOOST_TEST((stage.take() == lines{"up scorer-1 7", "draining scorer-1 7"}));
}

BOOST_AUTO_TEST_CASE(a_lost_process_is_told_of_to_those_that_fetch_from_it_too) {
  begin(role::trainer);
  view({entry(role::packer, "packer-0", 7)});
  BOOST_TEST(stage.take().empty()); // packers offer, they are not looked for
  view({entry(role::packer, "packer-0", 7, left)});
  BOOST_TEST((stage.take() == lines{"down packer-0 7: left"}));
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_FIXTURE_TEST_SUITE(the_directory_is_started_again, one_scorer)

BOOST_AUTO_TEST_CASE(words_of_a_directory_that_was_replaced_are_not_heard) {
  begin_with_scorer();
  view({}, first_directory + 1);
  view({scorer(7, left)});
  BOOST_TEST(stage.take().empty());
}

BOOST_AUTO_TEST_CASE(who_is_in_no_view_of_the_new_one_is_down_after_two_leases_without_a_link) {
  options.lease = std::chrono::milliseconds(5);
  begin();
  const auto linked = entry(role::scorer, "scorer-2", 8);
  const auto confirmed = entry(role::scorer, "scorer-3", 9);
  view({scorer(7, alive), linked, confirmed});
  link("scorer-2", 8, link_state::up);
  stage.take();
  view({confirmed}, first_directory + 1);
  const auto since = std::chrono::steady_clock::now();
  lines heard;
  BOOST_TEST(tick_until([&] {
    heard = stage.take();
    return !heard.empty();
  }));
  BOOST_TEST(
      (heard == lines{"down scorer-1 7: lost: it has not registered with the new directory"}));
  BOOST_TEST((std::chrono::steady_clock::now() - since > 2 * options.lease));
}

BOOST_AUTO_TEST_CASE(nobody_is_down_for_the_first_two_leases) {
  begin();
  view({scorer(7, alive)});
  stage.take();
  view({}, first_directory + 1);
  tick();
  BOOST_TEST(stage.take().empty());
}

BOOST_AUTO_TEST_SUITE_END()

struct losses_fixture : host_fixture {
  /// The directory and the link say so.
  void lose_assembler(const std::string &name) {
    view({entry(role::assembler, name, 7, gone)});
    link(name, 7, link_state::down);
  }
};

BOOST_FIXTURE_TEST_SUITE(without_whom_a_run_cannot_go_on, losses_fixture)

BOOST_AUTO_TEST_CASE(a_planner_that_is_gone_ends_every_process_with_one_line) {
  begin(role::scorer);
  view({entry(role::planner, "planner", 7)});
  view({entry(role::planner, "planner", 7, gone)});
  BOOST_TEST(over() == "planner is gone (" + lost + "): the run cannot go on without it");
  BOOST_TEST(!supervisor.got<run_over>()[0].ordered);
}

BOOST_AUTO_TEST_CASE(readers_cannot_go_on_without_the_journal_that_has_their_groups) {
  options.pinned = [](const std::string &name) { return name == "assembler-1" ? 12U : 0U; };
  begin(role::env_reader);
  view({entry(role::assembler, "assembler-0", 7), entry(role::assembler, "assembler-1", 7)});
  lose_assembler("assembler-0");
  BOOST_TEST(supervisor.got<run_over>().empty());
  lose_assembler("assembler-1");
  BOOST_TEST(over() == "assembler-1 is gone (" + lost +
                           "): the run cannot go on without it: only its journal has what came of "
                           "12 groups; start it again under its name, where its state is");
}

BOOST_AUTO_TEST_CASE(readers_wait_for_an_assembler_with_a_journal_to_be_started_again) {
  options.patience_for_restart = std::chrono::hours(1);
  options.pinned = [](const std::string &) { return 1U; };
  begin(role::env_reader);
  view({entry(role::assembler, "assembler-1", 7)});
  lose_assembler("assembler-1");
  tick();
  view({entry(role::assembler, "assembler-1", 8)});
  tick();
  BOOST_TEST(supervisor.got<run_over>().empty());
}

BOOST_AUTO_TEST_CASE(what_a_lost_journal_had_may_be_done_while_it_is_waited_for) {
  std::uint64_t groups = 3;
  // Over at once, were it not for the groups that are done.
  options.patience_for_restart = std::chrono::milliseconds(0);
  options.pinned = [&groups](const std::string &) { return std::exchange(groups, 0); };
  begin(role::env_reader);
  view({entry(role::assembler, "assembler-1", 7)});
  lose_assembler("assembler-1");
  BOOST_TEST(supervisor.got<run_over>().empty());
}

// The last word of what is safe there may wait in a reader's mailbox when it is lost.
BOOST_AUTO_TEST_CASE(what_a_lost_journal_alone_has_is_missed_also_when_readers_hear_it_late) {
  std::uint64_t groups = 0;
  options.patience_for_restart = std::chrono::milliseconds(0);
  options.pinned = [&groups](const std::string &) { return groups; };
  begin(role::env_reader);
  view({entry(role::assembler, "assembler-1", 7)});
  lose_assembler("assembler-1");
  tick();
  BOOST_TEST(supervisor.got<run_over>().empty());
  groups = 2;
  tick();
  BOOST_TEST(over().find("its journal has what came of 2 groups") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(an_assembler_that_leaves_in_order_takes_nothing_with_it) {
  options.pinned = [](const std::string &) { return 1U; };
  begin(role::env_reader);
  view({entry(role::assembler, "assembler-1", 7)});
  view({entry(role::assembler, "assembler-1", 7, left)});
  BOOST_TEST(supervisor.got<run_over>().empty());
}

BOOST_AUTO_TEST_CASE(the_planner_cannot_go_on_without_a_reader_or_a_rank) {
  for (const auto what : {role::env_reader, role::trainer}) {
    supervisor.got<run_over>().clear();
    begin(role::planner);
    view({entry(what, "gone-1", 7)});
    report("gone-1", 7);
    view({entry(what, "gone-1", 7, left)});
    BOOST_TEST(over() == "gone-1 is gone (left): the run cannot go on without it");
  }
}

// Its report was sent before it said that it leaves, and may be on a slower way.
BOOST_AUTO_TEST_CASE(the_planners_process_waits_for_the_report_of_one_that_has_left) {
  begin(role::planner);
  view({entry(role::packer, "packer-0", 7)});
  stage.take();
  view({entry(role::packer, "packer-0", 7, left)});
  tick();
  report("packer-0", 6); // of an earlier start
  BOOST_TEST(stage.take().empty());
  report("packer-0", 7);
  BOOST_TEST((stage.take() == lines{"down packer-0 7: left"}));
}

BOOST_AUTO_TEST_CASE(whatever_else_is_gone_the_run_goes_on) {
  begin(role::planner);
  for (const auto what : {role::assembler, role::scorer, role::packer, role::directory}) {
    const auto name = fmt::format("{}-1", to_string(what));
    view({entry(what, name, 7)});
    report(name, 7);
    view({entry(what, name, 7, left)});
  }
  BOOST_TEST(supervisor.got<run_over>().empty());
}

BOOST_AUTO_TEST_CASE(others_leave_it_to_the_planner_to_miss_a_rank) {
  begin(role::packer);
  view({entry(role::trainer, "trainer-0", 7)});
  view({entry(role::trainer, "trainer-0", 7, left)});
  BOOST_TEST(supervisor.got<run_over>().empty());
}

BOOST_AUTO_TEST_CASE(several_that_are_gone_are_one_end) {
  begin(role::planner);
  const auto one = entry(role::trainer, "trainer-0", 7);
  const auto other = entry(role::trainer, "trainer-1", 8);
  view({one, other});
  report("trainer-0", 7);
  report("trainer-1", 8);
  view({entry(role::trainer, "trainer-0", 7, left), entry(role::trainer, "trainer-1", 8, left)});
  BOOST_TEST(over().find("trainer-0") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_process_that_loses_planner_and_directory_for_three_leases_gives_up) {
  options.lease = std::chrono::milliseconds(5);
  begin(role::scorer);
  view({entry(role::planner, "planner", 7)});
  link("planner", 7, link_state::up);
  link("directory", 0, link_state::up);
  link("planner", 7, link_state::down);
  link("directory", 0, link_state::down);
  const auto since = std::chrono::steady_clock::now();
  BOOST_TEST(tick_until([&] { return !supervisor.got<run_over>().empty(); }));
  BOOST_TEST(over() == "planner and the directory are gone: the run cannot go on");
  BOOST_TEST((std::chrono::steady_clock::now() - since >= 3 * options.lease));
}

BOOST_AUTO_TEST_CASE(a_directory_that_refuses_a_process_ends_it_with_its_reason) {
  begin();
  link("directory", 0, link_state::refused, "this is run 'a', it belongs to run 'b'");
  BOOST_TEST(over() == "the directory refuses here: this is run 'a', it belongs to run 'b'");
}

BOOST_AUTO_TEST_CASE(an_order_to_end_comes_to_the_supervisor_with_its_reason) {
  begin();
  mail_from("planner", host_parcel{end_run{"disk full"}});
  BOOST_TEST(over() == "disk full");
  BOOST_TEST(supervisor.got<run_over>()[0].ordered);
  BOOST_TEST(!supervisor.got<run_over>()[0].restart);
  BOOST_TEST(!supervisor.got<run_over>()[0].drained);
}

BOOST_AUTO_TEST_CASE(an_order_to_start_again_comes_to_the_supervisor) {
  begin();
  mail_from("directory", host_parcel{end_run{"it was taken for lost", true}});
  BOOST_TEST(over() == "it was taken for lost");
  BOOST_TEST(supervisor.got<run_over>()[0].restart);
}

BOOST_AUTO_TEST_CASE(a_drained_process_leaves_when_its_actors_are_done) {
  begin(role::scorer);
  mail_from("directory", host_parcel{drain_process{}});
  BOOST_TEST((stage.take() == lines{"drain"}));
  BOOST_TEST(supervisor.got<run_over>().empty());
  world.tell(*subject, drained{"scorer-9"}); // nobody here
  BOOST_TEST(supervisor.got<run_over>().empty());
  world.tell(*subject, drained{"scorer-0"});
  world.tell(*subject, drained{"scorer-0"});
  BOOST_TEST(over() == "");
  BOOST_TEST(supervisor.got<run_over>()[0].drained);
}

BOOST_AUTO_TEST_CASE(a_process_that_is_told_to_drain_twice_tells_its_actors_once) {
  begin(role::scorer);
  mail_from("directory", host_parcel{drain_process{}});
  mail_from("directory", host_parcel{drain_process{}});
  BOOST_TEST((stage.take() == lines{"drain"}));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
} // namespace millrace::test
