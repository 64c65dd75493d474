// SPDX-License-Identifier: Apache-2.0
#include "actors/trainer/feeder.hpp"

#include "tests/unit/actors/trainer/feeder_fixture.hpp"

namespace millrace::test {
namespace {

using bins = std::vector<bin_ref>;

struct feeder_planner_fixture : feeder_fixture {
  /// The one answer to a hello; it is taken.
  rank_state state() {
    BOOST_REQUIRE_EQUAL(planner.got<rank_state>().size(), 1);
    const auto out = planner.got<rank_state>()[0];
    planner.got<rank_state>().clear();
    return out;
  }
  void record(std::uint64_t trained, std::uint64_t durable) {
    world.tell(*subject, steps_recorded{trained, durable, claim_of(now)});
  }
  void end_job(std::uint64_t generation) {
    world.tell(*subject, end_generation{generation, "rank 3 is lost", claim_of(now)});
  }
  bool has_failed() { return !supervisor.got<run_failed>().empty(); }
};

BOOST_FIXTURE_TEST_SUITE(feeder_and_planners, feeder_planner_fixture)

BOOST_AUTO_TEST_CASE(a_fresh_rank_answers_when_its_trainer_has_loaded_the_durable_step) {
  begin_fresh();
  hello(7, 10);
  BOOST_TEST(planner.got<rank_state>().empty());
  BOOST_REQUIRE_EQUAL(trainer.got<load_checkpoint>().size(), 1);
  BOOST_TEST(trainer.got<load_checkpoint>()[0].step == 10U);
  BOOST_TEST((trainer.got<load_checkpoint>()[0].feeder.local() ==
              static_cast<const caf::actor &>(*subject)));
  loaded(10);
  const auto stands = state();
  BOOST_TEST(stands.rank == 1U);
  BOOST_TEST(stands.epoch == 7U);
  BOOST_TEST(stands.generation == 0U);
  BOOST_TEST(stands.next == 11U);
  BOOST_TEST(stands.saved == 10U);
  BOOST_TEST(stands.committed.empty());
}

BOOST_AUTO_TEST_CASE(a_second_hello_of_a_fresh_rank_loads_nothing_twice) {
  begin_fresh();
  hello(7, 10);
  hello(8, 10);
  BOOST_TEST(trainer.got<load_checkpoint>().size() == 1U);
  loaded(10);
  BOOST_TEST(state().epoch == 8U);
  hello(9, 10);
  BOOST_TEST(state().epoch == 9U);
  BOOST_TEST(trainer.got<load_checkpoint>().size() == 1U);
}

BOOST_AUTO_TEST_CASE(a_planner_that_names_another_checkpoint_gets_that_one) {
  begin_fresh();
  hello(7, 5);
  hello(8, 10);
  BOOST_TEST(trainer.got<load_checkpoint>().size() == 2U);
  loaded(5);
  BOOST_TEST(planner.got<rank_state>().empty());
  loaded(10);
  BOOST_TEST(state().next == 11U);
}

BOOST_AUTO_TEST_CASE(a_rank_in_a_job_answers_at_once_and_loads_nothing) {
  make(1);
  hello(8, 0);
  const auto stands = state();
  BOOST_TEST(stands.generation == 1U);
  BOOST_TEST(stands.next == 2U);
  BOOST_TEST(trainer.got<load_checkpoint>().empty());
}

BOOST_AUTO_TEST_CASE(answers_go_to_the_planner_that_has_said_hello_last) {
  world.tell(*subject, planner_hello{{some_digest(1), 8}, 0, other_planner.actor()});
  BOOST_TEST(other_planner.got<rank_state>().size() == 1U);
  now = 8;
  make(1);
  train(1);
  BOOST_TEST(other_planner.got<step_staged>().size() == 1U);
  BOOST_TEST(other_planner.got<step_trained>().size() == 1U);
  BOOST_TEST(planner.got<step_staged>().empty());
}

BOOST_AUTO_TEST_CASE(a_planner_of_a_lower_epoch_is_fenced) {
  hello(6);
  BOOST_REQUIRE_EQUAL(planner.got<planner_refused>().size(), 1);
  const auto &refused = planner.got<planner_refused>()[0];
  BOOST_TEST(refused.claim.epoch == 6U);
  BOOST_TEST(refused.why == "fenced: epoch 7 leads, this is 6");
  BOOST_TEST(planner.got<rank_state>().empty());
}

BOOST_AUTO_TEST_CASE(a_planner_of_another_folder_is_refused_whatever_its_epoch) {
  world.tell(*subject, planner_hello{{some_digest(2), 9}, 0, other_planner.actor()});
  BOOST_REQUIRE_EQUAL(other_planner.got<planner_refused>().size(), 1);
  const auto &refused = other_planner.got<planner_refused>()[0];
  BOOST_TEST((refused.claim == planner_claim{some_digest(2), 9}));
  BOOST_TEST(refused.why == fmt::format("another planner leads this run: folder {}, epoch 7",
                                        some_digest(1).hex()));
  make(1); // it goes on with its own
  BOOST_TEST(planner.got<step_staged>().size() == 1U);
  BOOST_TEST(trainer.got<train_step>().size() == 1U);
}

BOOST_AUTO_TEST_CASE(a_new_epoch_drops_what_is_not_committed_and_packers_hear_of_it) {
  make(1);
  expect(2, 2);
  pack(2, 0);
  offer(2, 1);
  offer_from(packer_1(), 3, 0);
  hello(8);
  BOOST_TEST((taken(packer) == bins{at(2, 1)}));
  BOOST_TEST((taken(second) == bins{at(3, 0)}));
  BOOST_TEST(state().next == 2U);
  now = 8;
  expect(2, 1); // cut anew
  BOOST_TEST(planner.got<step_staged>().size() == 1U);
  pack(2, 0, 6);
  BOOST_REQUIRE_EQUAL(planner.got<step_staged>().size(), 2);
  BOOST_TEST(planner.got<step_staged>()[1].epoch == 8U);
  BOOST_TEST(!has_failed());
}

BOOST_AUTO_TEST_CASE(what_was_asked_for_in_an_older_epoch_counts_no_more) {
  begin(1000);
  offer(2, 0, 600);
  hello(8);
  now = 8;
  offer_from(packer_1(), 2, 0, 600);
  BOOST_TEST((asked(second) == bins{at(2, 0)}));
}

BOOST_AUTO_TEST_CASE(work_of_an_older_epoch_is_ignored_and_its_packer_may_forget_it) {
  hello(8);
  offer(1, 0);
  BOOST_TEST((taken(packer) == bins{at(1, 0)}));
  BOOST_TEST(asked(packer).empty());
  expect(1, 1);
  pack(1, 0);
  BOOST_TEST(planner.got<step_staged>().empty());
  BOOST_TEST(counters->stages.digest.bytes == 0U);
}

BOOST_AUTO_TEST_CASE(a_hello_of_the_epoch_that_is_known_drops_nothing) {
  expect(1, 2);
  pack(1, 0);
  hello(7);
  pack(1, 1);
  BOOST_TEST(planner.got<step_staged>().size() == 1U);
}

BOOST_AUTO_TEST_CASE(an_offer_of_a_higher_epoch_counts_as_its_hello) {
  expect(1, 2);
  pack(1, 0);
  offer(1, 1);
  const auto old = at(1, 1);
  now = 8;
  offer_from(packer_1(), 1, 0);
  BOOST_TEST((taken(packer) == bins{old}));
  BOOST_TEST((asked(second) == bins{at(1, 0)}));
  hello(8);
  BOOST_TEST(taken(second).empty());
  hello(7);
  BOOST_TEST(planner.got<planner_refused>().size() == 1U);
}

BOOST_AUTO_TEST_CASE(micro_batches_are_asked_for_with_the_epoch_of_their_offer) {
  offer(1, 0);
  BOOST_REQUIRE_EQUAL(asked(packer).size(), 1);
  BOOST_TEST(asked(packer)[0].claim.epoch == 7U);
}

BOOST_AUTO_TEST_CASE(a_commit_of_an_older_epoch_is_late_and_not_taken) {
  expect(1, 1);
  pack(1, 0);
  hello(8);
  commit(1);
  BOOST_TEST(trainer.got<train_step>().empty());
  BOOST_TEST(!has_failed());
}

BOOST_AUTO_TEST_CASE(a_commit_of_what_is_not_staged_ends_the_run) {
  expect(1, 2);
  pack(1, 0);
  commit(1);
  BOOST_TEST((failure().code == errc::conflict));
  BOOST_TEST(trainer.got<train_step>().empty());
}

BOOST_AUTO_TEST_CASE(a_commit_that_is_said_again_is_a_repeat) {
  make(1);
  hello(8);
  now = 8;
  commit(1);
  BOOST_TEST(counters->repeats == 1U);
  BOOST_TEST(trainer.got<train_step>().size() == 1U);
  BOOST_TEST(!has_failed());
}

BOOST_AUTO_TEST_CASE(a_second_commit_with_another_digest_ends_the_run_with_both) {
  make(1);
  commit(1, 6);
  const auto why = failure();
  BOOST_TEST((why.code == errc::conflict));
  BOOST_TEST(why.message.find(some_digest(5).hex()) != std::string::npos, why.message);
  BOOST_TEST(why.message.find(some_digest(6).hex()) != std::string::npos, why.message);
}

BOOST_AUTO_TEST_CASE(a_commit_before_a_job_has_begun_ends_the_run) {
  begin_fresh();
  hello(7);
  loaded(0);
  make(1);
  BOOST_TEST((failure().code == errc::conflict));
  BOOST_TEST(trainer.got<train_step>().empty());
}

BOOST_AUTO_TEST_CASE(a_job_begins_at_the_step_after_the_checkpoint) {
  begin_fresh();
  join(11);
  make(11);
  BOOST_TEST(trainer.got<train_step>().size() == 1U);
  BOOST_TEST(!has_failed());
}

BOOST_AUTO_TEST_CASE(a_job_that_begins_elsewhere_than_the_rank_stands_ends_the_run) {
  begin_fresh();
  hello(7, 10);
  loaded(10);
  begin_job(1, 6);
  BOOST_TEST((failure().code == errc::conflict));
  BOOST_TEST(trainer.got<begin_training>().empty());
}

BOOST_AUTO_TEST_CASE(the_trainer_joins_the_others_of_its_generation) {
  begin_fresh();
  hello(7);
  loaded(0);
  begin_job(3, 1);
  begin_job(3, 1); // said again
  BOOST_REQUIRE_EQUAL(trainer.got<begin_training>().size(), 1);
  BOOST_TEST(trainer.got<begin_training>()[0].generation == 3U);
  BOOST_TEST((trainer.got<begin_training>()[0].feeder.local() ==
              static_cast<const caf::actor &>(*subject)));
  hello(8);
  BOOST_TEST(planner.got<rank_state>().back().generation == 3U);
}

// It got the word of a planner that died before others got it.
BOOST_AUTO_TEST_CASE(a_rank_that_is_part_of_a_job_and_hears_of_a_later_one_begins_anew) {
  begin_job(2, 1);
  BOOST_TEST((failure().code == errc::restart));
}

BOOST_AUTO_TEST_CASE(the_end_of_its_job_ends_the_process_to_be_started_again) {
  end_job(1);
  const auto why = failure();
  BOOST_TEST((why.code == errc::restart));
  BOOST_TEST(why.message == "generation 1 ends: rank 3 is lost");
}

BOOST_AUTO_TEST_CASE(the_end_of_another_job_changes_nothing) {
  end_job(2);
  BOOST_TEST(!has_failed());
  begin_fresh();
  end_job(1);
  end_job(0);
  BOOST_TEST(!has_failed());
}

BOOST_AUTO_TEST_CASE(what_is_committed_and_trained_is_told_until_it_is_recorded) {
  make(1);
  make(2);
  make(3);
  train(1);
  train(2);
  BOOST_TEST(planner.got<step_trained>().size() == 2U);
  hello(8);
  auto stands = state();
  BOOST_REQUIRE_EQUAL(stands.committed.size(), 3);
  BOOST_TEST(stands.committed[0].step == 1U);
  BOOST_TEST((stands.committed[0].digest == some_digest(5)));
  BOOST_REQUIRE_EQUAL(stands.trained.size(), 2);
  BOOST_TEST(stands.trained[1].step == 2U);
  BOOST_TEST(stands.trained[1].totals.rl == 2);
  now = 8;
  record(2, 0);
  hello(9);
  stands = state();
  BOOST_REQUIRE_EQUAL(stands.committed.size(), 1);
  BOOST_TEST(stands.committed[0].step == 3U);
  BOOST_TEST(stands.trained.empty());
  BOOST_TEST(stands.next == 4U);
}

BOOST_AUTO_TEST_CASE(late_words_of_an_older_planner_change_nothing) {
  make(1);
  train(1);
  hello(8);
  planner.got<rank_state>().clear();
  record(1, 1); // of epoch 7: its steps may have been rolled back since
  end_job(1);
  begin_job(2, 2);
  world.tell(*subject, finish_training{1, claim_of(now)});
  BOOST_TEST(!has_failed());
  BOOST_TEST(trainer.got<steps_recorded>().empty());
  BOOST_TEST(trainer.got<finish_training>().empty());
  hello(9);
  BOOST_TEST(state().committed.size() == 1U);
}

BOOST_AUTO_TEST_CASE(work_of_another_folder_is_ignored_whatever_its_epoch) {
  expect(1, 2);
  pack(1, 0);
  const bin_ref other{1, 1, 1, claim_of(9, 2)};
  world.tell(*subject, micro_batch_ready{other, 100, packer_1()});
  world.tell(*subject, stage_step{1, 1, claim_of(9, 2)});
  world.tell(*subject, commit_step{1, some_digest(5), claim_of(9, 2)});
  world.tell(*subject, end_generation{1, "a test", claim_of(9, 2)});
  BOOST_TEST((taken(second) == bins{other}));
  pack(1, 1); // its own planner's
  BOOST_TEST(planner.got<step_staged>().size() == 1U);
  BOOST_TEST(!has_failed());
}

BOOST_AUTO_TEST_CASE(nothing_binds_a_rank_before_its_job_begins) {
  begin_fresh();
  world.tell(*subject, planner_hello{claim_of(9, 2), 0, other_planner.actor()});
  loaded(0);
  BOOST_TEST(other_planner.got<rank_state>().size() == 1U);
  world.tell(*subject, planner_hello{claim_of(3, 1), 0, planner.actor()});
  BOOST_REQUIRE_EQUAL(other_planner.got<planner_refused>().size(), 1);
  BOOST_TEST((other_planner.got<planner_refused>()[0].claim == claim_of(9, 2)));
  BOOST_TEST(planner.got<planner_refused>().empty());
  BOOST_REQUIRE_EQUAL(trainer.got<load_checkpoint>().size(), 2); // anew, and for this folder
  BOOST_TEST((trainer.got<load_checkpoint>()[1].folder == some_digest(1)));
  loaded(0);
  BOOST_TEST(state().epoch == 3U);
  world.tell(*subject, begin_generation{1, 1, claim_of(9, 2)}); // it is told already
  BOOST_TEST(trainer.got<begin_training>().empty());
  now = 3;
  begin_job(1, 1);
  BOOST_REQUIRE_EQUAL(trainer.got<begin_training>().size(), 1);
  BOOST_TEST((trainer.got<begin_training>()[0].folder == some_digest(1)));
  make(1);
  BOOST_TEST(trainer.got<train_step>().size() == 1U);
}

BOOST_AUTO_TEST_CASE(a_checkpoint_is_told_at_once_and_to_every_later_planner) {
  world.tell(*subject, checkpoint_saved{1, 5});
  BOOST_REQUIRE_EQUAL(planner.got<checkpoint_saved>().size(), 1);
  BOOST_TEST(planner.got<checkpoint_saved>()[0].step == 5U);
  hello(8);
  BOOST_TEST(state().saved == 5U);
}

BOOST_AUTO_TEST_CASE(the_trainer_hears_of_a_new_durable_step_once) {
  record(4, 0);
  record(5, 5);
  record(6, 5);
  BOOST_REQUIRE_EQUAL(trainer.got<steps_recorded>().size(), 1);
  BOOST_TEST(trainer.got<steps_recorded>()[0].durable == 5U);
}

BOOST_AUTO_TEST_CASE(a_new_planner_gets_what_ranks_here_have_told_the_others) {
  told = {{"generation 1/1", "address"}};
  hello(8);
  BOOST_REQUIRE_EQUAL(planner.got<rank_notice>().size(), 1);
  BOOST_TEST(planner.got<rank_notice>()[0].key == "generation 1/1");
}

BOOST_AUTO_TEST_CASE(offers_that_come_before_the_job_begins_are_fetched_or_forgotten_by_then) {
  begin_fresh();
  offer(6, 0);
  offer_from(packer_1(), 5, 0);
  hello(7, 5);
  loaded(5);
  begin_job(1, 6);
  BOOST_TEST((taken(second) == bins{at(5, 0)}));
  expect(6, 1);
  pack(6, 0);
  BOOST_TEST(planner.got<step_staged>().size() == 1U);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
} // namespace millrace::test
