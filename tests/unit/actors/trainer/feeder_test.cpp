// SPDX-License-Identifier: Apache-2.0
#include "actors/trainer/feeder.hpp"

#include "tests/unit/actors/trainer/feeder_fixture.hpp"

namespace millrace::test {
namespace {

using bins = std::vector<bin_ref>;

BOOST_FIXTURE_TEST_SUITE(feeder_suite, feeder_fixture)

BOOST_AUTO_TEST_CASE(a_step_is_staged_when_all_its_micro_batches_are_here) {
  expect(1, 2);
  pack(1, 1);
  BOOST_TEST(planner.got<step_staged>().empty());
  pack(1, 0);
  BOOST_REQUIRE_EQUAL(planner.got<step_staged>().size(), 1);
  const auto &staged = planner.got<step_staged>()[0];
  BOOST_TEST(staged.rank == 1U);
  BOOST_REQUIRE_EQUAL(staged.digests.size(), 2);
  BOOST_TEST(staged.digests[0].index == 0U);
  BOOST_TEST(staged.wire_bytes == counters->stages.trainer_decode.bytes);
}

BOOST_AUTO_TEST_CASE(micro_batches_may_come_before_the_planner_says_how_many) {
  pack(1, 0);
  BOOST_TEST(planner.got<step_staged>().empty());
  expect(1, 1);
  BOOST_TEST(planner.got<step_staged>().size() == 1U);
}

BOOST_AUTO_TEST_CASE(digests_tell_contents_apart) {
  expect(1, 2);
  pack(1, 0, 5);
  pack(1, 1, 6);
  const auto &digests = planner.got<step_staged>().at(0).digests;
  BOOST_TEST((digests[0].digest != digests[1].digest));
}

BOOST_AUTO_TEST_CASE(a_committed_step_goes_to_the_trainer_by_index) {
  expect(1, 2);
  pack(1, 1, 6);
  pack(1, 0, 5);
  commit(1);
  BOOST_REQUIRE_EQUAL(trainer.got<train_step>().size(), 1);
  const auto &batches = trainer.got<train_step>()[0].micro_batches;
  BOOST_REQUIRE_EQUAL(batches.size(), 2);
  BOOST_TEST(batches[0].tokens() == 8U);
  BOOST_TEST(batches[1].tokens() == 9U);
}

BOOST_AUTO_TEST_CASE(nothing_goes_to_the_trainer_before_its_commit) {
  expect(1, 1);
  pack(1, 0);
  BOOST_TEST(trainer.got<train_step>().empty());
}

// A packer did the work of a lost one again.
BOOST_AUTO_TEST_CASE(a_micro_batch_that_comes_twice_is_kept_once_and_counted_as_a_repeat) {
  expect(1, 2);
  pack(1, 0);
  pack(1, 0);
  BOOST_TEST(planner.got<step_staged>().empty());
  BOOST_TEST(counters->repeats == 1U);
  pack(1, 1);
  BOOST_REQUIRE_EQUAL(planner.got<step_staged>().size(), 1);
  BOOST_TEST(planner.got<step_staged>()[0].digests.size() == 2U);
  BOOST_TEST(supervisor.got<run_failed>().empty());
}

BOOST_AUTO_TEST_CASE(a_micro_batch_that_comes_twice_with_other_content_ends_the_run) {
  expect(1, 2);
  pack(1, 0, 5);
  pack(1, 0, 6);
  const auto why = failure();
  BOOST_TEST((why.code == errc::conflict));
  BOOST_TEST(why.message.find("micro batch 0 of step 1 came twice") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(bytes_that_are_no_micro_batch_end_the_run_and_nothing_else) {
  expect(1, 1);
  world.tell(*subject, micro_batch_packed{at(1, 0), {bytes_of(std::vector<int>(100, 7))}});
  failure();
}

BOOST_AUTO_TEST_CASE(a_micro_batch_that_is_another_than_it_is_said_to_be_ends_the_run) {
  expect(1, 1);
  for (const bin_ref &other : {bin_ref{2, 1, 0}, bin_ref{1, 0, 0}, bin_ref{1, 1, 3}}) {
    supervisor.got<run_failed>().clear();
    world.tell(*subject, micro_batch_packed{at(1, 0), parts(other, 5)});
    BOOST_TEST((failure().code == errc::conflict));
  }
  BOOST_TEST(planner.got<step_staged>().empty());
}

BOOST_AUTO_TEST_CASE(an_offer_for_another_rank_ends_the_run) {
  world.tell(*subject, micro_batch_ready{{1, 0, 0, claim_of(epoch)}, 100, packer_0()});
  BOOST_TEST((failure().code == errc::conflict));
  BOOST_TEST(asked(packer).empty());
}

BOOST_AUTO_TEST_CASE(a_commit_out_of_order_ends_the_run) {
  expect(1, 1);
  expect(2, 1);
  pack(2, 0);
  commit(2);
  BOOST_TEST((failure().code == errc::conflict));
  BOOST_TEST(trainer.got<train_step>().empty());
}

BOOST_AUTO_TEST_CASE(an_offer_is_fetched_once_and_its_packer_hears_when_it_is_here) {
  offer(1, 0);
  BOOST_TEST((asked(packer) == bins{at(1, 0)}));
  BOOST_TEST((packer.got<fetch_micro_batch>()[0].feeder ==
              peer({"feeder-1", 0}, static_cast<const caf::actor &>(*subject))));
  BOOST_TEST(taken(packer).empty());
  pack(1, 0);
  BOOST_TEST((taken(packer) == bins{at(1, 0)}));
  world.tell(*subject, look_for_room{});
  BOOST_TEST(asked(packer).size() == 1U);
}

BOOST_AUTO_TEST_CASE(an_offer_of_what_is_here_or_committed_is_answered_taken) {
  expect(1, 1);
  pack(1, 0);
  offer(1, 0);
  BOOST_TEST((taken(packer) == bins{at(1, 0)}));
  commit(1);
  offer(1, 0);
  BOOST_TEST((taken(packer) == bins{at(1, 0), at(1, 0)}));
  BOOST_TEST(asked(packer).empty());
}

BOOST_AUTO_TEST_CASE(a_micro_batch_of_a_committed_step_is_dropped) {
  expect(1, 1);
  pack(1, 0);
  commit(1);
  const std::uint64_t digested = counters->stages.digest.bytes;
  pack(1, 0, 6);
  expect(1, 1);
  BOOST_TEST(counters->stages.digest.bytes == digested);
  BOOST_TEST(planner.got<step_staged>().size() == 1U);
  BOOST_TEST(supervisor.got<run_failed>().empty());
}

BOOST_AUTO_TEST_CASE(the_step_that_is_needed_next_is_fetched_whatever_is_held) {
  begin(1000);
  counters->memory->add(5000);
  offer(1, 0, 1'000'000);
  offer(1, 1, 1'000'000);
  BOOST_TEST((asked(packer) == bins{at(1, 0), at(1, 1)}));
}

BOOST_AUTO_TEST_CASE(later_steps_are_fetched_only_as_far_as_memory_allows) {
  begin(1000);
  offer(2, 0, 600);
  BOOST_TEST((asked(packer) == bins{at(2, 0)}));
  offer(2, 1, 600); // with what was asked for it is too much
  world.tell(*subject, look_for_room{});
  BOOST_TEST(asked(packer).size() == 1U);
  pack(2, 0);
  BOOST_TEST((asked(packer) == bins{at(2, 0), at(2, 1)}));
}

BOOST_AUTO_TEST_CASE(a_later_step_is_fetched_when_memory_comes_free) {
  begin(1000);
  counters->memory->add(5000);
  offer(2, 0);
  BOOST_TEST(asked(packer).empty());
  counters->memory->remove(5000);
  world.tell(*subject, look_for_room{});
  BOOST_TEST((asked(packer) == bins{at(2, 0)}));
}

BOOST_AUTO_TEST_CASE(the_next_step_is_needed_once_the_one_before_it_is_staged) {
  begin(1000);
  counters->memory->add(5000);
  offer(1, 0);
  offer(2, 0);
  BOOST_TEST((asked(packer) == bins{at(1, 0)}));
  expect(1, 1);
  pack(1, 0);
  BOOST_TEST((asked(packer) == bins{at(1, 0), at(2, 0)}));
}

BOOST_AUTO_TEST_CASE(an_offer_of_another_packer_replaces_the_first_which_may_forget_its_own) {
  offer(1, 0);
  offer_from(packer_1(), 1, 0);
  BOOST_TEST((asked(second) == bins{at(1, 0)}));
  BOOST_TEST((taken(packer) == bins{at(1, 0)}));
  pack(1, 0);
  BOOST_TEST((taken(second) == bins{at(1, 0)}));
}

// Its groups moved after it was gathered, and its order came again.
BOOST_AUTO_TEST_CASE(an_offer_that_its_packer_repeats_is_asked_for_once) {
  offer(1, 0);
  offer(1, 0);
  BOOST_TEST((asked(packer) == bins{at(1, 0)}));
  BOOST_TEST(taken(packer).empty());
}

BOOST_AUTO_TEST_CASE(a_replaced_offer_counts_as_asked_for_no_more) {
  begin(1000);
  offer(2, 0, 600);
  offer_from(packer_1(), 2, 0, 600);
  BOOST_TEST((asked(second) == bins{at(2, 0)}));
}

BOOST_AUTO_TEST_CASE(what_a_lost_packer_offered_counts_as_asked_for_no_more) {
  begin(1000);
  offer(2, 0, 600);
  offer_from(packer_1(), 2, 1, 600);
  BOOST_TEST(asked(second).empty());
  lose(packer_0());
  BOOST_TEST((asked(second) == bins{at(2, 1)}));
}

BOOST_AUTO_TEST_CASE(what_a_lost_packer_offered_is_fetched_from_another) {
  expect(1, 2);
  offer(1, 0);
  offer_from(packer_1(), 1, 1);
  lose(packer_0());
  offer_from(packer_1(), 1, 0);
  BOOST_TEST((asked(second) == bins{at(1, 1), at(1, 0)}));
  pack(1, 0);
  pack(1, 1);
  BOOST_TEST((taken(second) == bins{at(1, 0), at(1, 1)}));
  BOOST_TEST(planner.got<step_staged>().size() == 1U);
}

BOOST_AUTO_TEST_CASE(the_loss_of_a_packer_leaves_offers_of_others_alone) {
  offer(1, 0);
  lose(packer_1());
  pack(1, 0);
  BOOST_TEST((taken(packer) == bins{at(1, 0)}));
}

BOOST_AUTO_TEST_CASE(what_other_ranks_tell_goes_to_who_joins_the_collective) {
  world.tell(*subject, rank_notice{"0/1", "address"});
  BOOST_REQUIRE_EQUAL(noticed.size(), 1);
  BOOST_TEST(noticed[0].key == "0/1");
}

// The losses divide by the counts, and people read the ages: both come with the step.
BOOST_AUTO_TEST_CASE(a_step_comes_with_its_token_counts_and_the_ages_of_its_episodes) {
  expect(1, 2);
  pack(1, 0, 5);
  pack(1, 1, 7);
  const std::vector ages{staleness_count{0, 3}, staleness_count{2, 1}};
  world.tell(*subject, commit_step{1, some_digest(5), claim_of(now), ages});
  BOOST_REQUIRE_EQUAL(trainer.got<train_step>().size(), 1);
  const auto &step = trainer.got<train_step>()[0];
  micro_batch_tensors tensors;
  component_totals want;
  for (const auto &batch : step.micro_batches) {
    widen(batch, tensors);
    want += count_components(tensors);
  }
  BOOST_TEST(want.rl > 0);
  BOOST_TEST((step.mine == want));
  BOOST_TEST((step.staleness == ages));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
} // namespace millrace::test
