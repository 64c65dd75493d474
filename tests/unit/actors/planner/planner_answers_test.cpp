// SPDX-License-Identifier: Apache-2.0
// Answers that cannot be had twice: whose turn it is, and what the log says of them.
#include "tests/unit/actors/planner/planner_fixture.hpp"

namespace millrace::test {
namespace {

using state_bytes = std::vector<std::uint8_t>;

struct answers_fixture : planner_fixture {
  using scorer_probe = probe<score_turn>;
  scorer_probe scorer{world};
  scorer_probe other_scorer{world};

  void want(std::uint64_t ordinal, scorer_probe &who, std::string key = "env") {
    world.tell(*subject, score_wanted{{ordinal, 0},
                                      header(1, 0, wire::EpisodeStatus::Ok, ordinal),
                                      std::move(key),
                                      assembler.actor(),
                                      who.actor()});
  }
  void want(std::uint64_t ordinal) { want(ordinal, scorer); }
  /// @param temperature tells answers apart.
  void answer(std::uint64_t ordinal, answer_link link, double temperature = 1) {
    auto head = header(1, 0, wire::EpisodeStatus::Ok, ordinal);
    env_config env;
    env.temperature = temperature;
    auto annotations =
        annotate(parse<wire::GroupHeader>(head).value(), env, {}).value().annotations;
    world.tell(*subject, group_scored{{ordinal, 0},
                                      std::move(head),
                                      std::move(annotations),
                                      assembler.actor(),
                                      std::move(link)});
  }
  std::vector<std::uint64_t> turns(scorer_probe &who) {
    std::vector<std::uint64_t> out;
    for (const auto &turn : who.got<score_turn>())
      if (!turn.scored)
        out.push_back(turn.group.ordinal);
    return out;
  }
  /// The temperatures in the bins of the first step packed.
  float packed_temperature() {
    BOOST_REQUIRE(!packer.got<pack_bin>().empty());
    return parse<wire::GroupAnnotations>(packer.got<pack_bin>()[0].groups[0].annotations)
        .value()
        ->temperature();
  }
};

const answer_link first_answer{"env", 1, {}, {7}};
const answer_link second_answer{"env", 2, {7}, {8}};

BOOST_FIXTURE_TEST_SUITE(planner_answers, answers_fixture)

BOOST_AUTO_TEST_CASE(the_next_group_of_a_key_gets_the_state_that_the_one_before_left) {
  begin();
  want(0);
  want(1);
  BOOST_REQUIRE_EQUAL(scorer.got<score_turn>().size(), 1);
  BOOST_TEST(scorer.got<score_turn>()[0].number == 1U);
  BOOST_TEST(scorer.got<score_turn>()[0].state.empty());
  answer(0, first_answer);
  BOOST_REQUIRE_EQUAL(scorer.got<score_turn>().size(), 2);
  BOOST_TEST(scorer.got<score_turn>()[1].number == 2U);
  BOOST_TEST(scorer.got<score_turn>()[1].state == state_bytes{7}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(an_answer_out_of_another_state_is_refused_and_the_group_is_scored_again) {
  begin();
  want(0);
  want(1);
  answer(0, first_answer);
  answer(1, {"env", 2, {6}, {8}});
  BOOST_TEST(counters->refused_answers == 1U);
  BOOST_REQUIRE_EQUAL(assembler.got<groups_wanted>().size(), 1);
  BOOST_TEST((assembler.got<groups_wanted>()[0].groups == std::vector<group_ref>{{1, 0}}));
  BOOST_TEST(packed() == std::vector<std::uint64_t>{0}, boost::test_tools::per_element());
  want(1);
  answer(1, second_answer);
  stage(1);
  BOOST_TEST(packed() == (std::vector<std::uint64_t>{0, 1}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(an_answer_whose_turn_it_was_not_is_refused) {
  begin();
  want(0);
  want(1);
  answer(1, first_answer);
  BOOST_TEST(counters->refused_answers == 1U);
  BOOST_TEST(packed().empty());
}

BOOST_AUTO_TEST_CASE(a_scorer_that_dies_before_it_answers_is_replaced_by_the_next_one_to_ask) {
  begin();
  want(0);
  want(0, other_scorer);
  BOOST_TEST(turns(other_scorer) == std::vector<std::uint64_t>{0},
             boost::test_tools::per_element());
  answer(0, first_answer);
  BOOST_TEST(packed() == std::vector<std::uint64_t>{0}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_scorer_that_dies_after_it_has_answered_is_asked_by_nobody) {
  begin();
  want(0);
  answer(0, first_answer, 2);
  want(0, other_scorer); // the assembler has not heard of it yet
  BOOST_REQUIRE_EQUAL(other_scorer.got<score_turn>().size(), 1);
  BOOST_TEST(other_scorer.got<score_turn>()[0].scored);
  answer(0, first_answer, 3); // and if it had answered, too
  BOOST_TEST(counters->repeats == 2U);
  BOOST_TEST(packed_temperature() == 2.0F);
}

BOOST_AUTO_TEST_CASE(an_answer_in_the_log_is_used_after_a_restart_and_nobody_scores_again) {
  begin();
  want(0);
  want(1);
  answer(0, first_answer, 2);
  packer.got<pack_bin>().clear();
  begin(); // before step 1 was committed
  want(1, other_scorer);
  BOOST_TEST(turns(other_scorer) == std::vector<std::uint64_t>{1},
             boost::test_tools::per_element());
  BOOST_TEST(other_scorer.got<score_turn>()[0].number == 2U);
  want(0, other_scorer);
  BOOST_REQUIRE_EQUAL(other_scorer.got<score_turn>().size(), 2);
  BOOST_TEST(other_scorer.got<score_turn>()[1].scored);
  BOOST_TEST(packed_temperature() == 2.0F);
}

BOOST_AUTO_TEST_CASE(an_answer_that_did_not_reach_the_log_is_given_anew_from_the_same_state) {
  begin();
  want(0);
  begin();
  want(0, other_scorer);
  BOOST_REQUIRE_EQUAL(other_scorer.got<score_turn>().size(), 1);
  BOOST_TEST(other_scorer.got<score_turn>()[0].number == 1U);
  answer(0, first_answer);
  BOOST_TEST(packed() == std::vector<std::uint64_t>{0}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_group_of_another_environment_holds_up_nobody_once_it_is_known) {
  begin();
  want(1);
  BOOST_TEST(turns(scorer).empty()); // group 0 may be of the same key
  group(0);
  BOOST_TEST(turns(scorer) == std::vector<std::uint64_t>{1}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(an_answer_without_key_is_logged_and_waits_for_nobody) {
  begin();
  want(1, scorer, "");
  BOOST_REQUIRE_EQUAL(scorer.got<score_turn>().size(), 1);
  BOOST_TEST(scorer.got<score_turn>()[0].number == 0U);
  answer(1, {}, 2);
  begin();
  group(0);
  stage(1);
  want(1, other_scorer, "");
  BOOST_REQUIRE_EQUAL(other_scorer.got<score_turn>().size(), 1);
  BOOST_TEST(other_scorer.got<score_turn>()[0].scored);
}

BOOST_AUTO_TEST_CASE(an_answer_without_key_that_names_a_state_is_refused) {
  begin();
  want(0, scorer, "");
  answer(0, {"", 1, {}, {7}});
  BOOST_TEST(counters->refused_answers == 1U);
  BOOST_TEST(supervisor.got<run_failed>().empty());
}

BOOST_AUTO_TEST_CASE(an_answer_that_cannot_be_used_does_not_reach_the_log) {
  begin();
  want(0);
  const auto one = header_of(group_of({episode_of("a", 1, {prompt(-1, 3)})})).bytes();
  auto annotations = annotate(parse<wire::GroupHeader>(header(1, 0)).value(), env_config{}, {})
                         .value()
                         .annotations;
  world.tell(*subject, group_scored{{0, 0}, one, annotations, assembler.actor(), first_answer});
  BOOST_TEST(supervisor.got<run_failed>().size() == 1U);
  begin();
  want(0, other_scorer);
  BOOST_REQUIRE_EQUAL(other_scorer.got<score_turn>().size(), 1);
  BOOST_TEST(!other_scorer.got<score_turn>()[0].scored);
}

BOOST_AUTO_TEST_CASE(a_group_whose_step_is_rolled_back_keeps_its_answer) {
  options.keep = step_keep::trained;
  begin();
  want(0);
  answer(0, first_answer, 2);
  stage(1); // committed, and not trained
  packer.got<pack_bin>().clear();
  for (std::uint32_t rank : {0U, 1U}) { // its ranks begin anew
    world.tell(*subject,
               peer_down{role::trainer, named(fmt::format("feeder-{}", rank), feeder(rank).actor()),
                         "lost"});
    ranks[rank] = {.rank = rank, .next = 1};
  }
  ranks_up();
  want(0, other_scorer);
  BOOST_REQUIRE_EQUAL(other_scorer.got<score_turn>().size(), 1);
  BOOST_TEST(other_scorer.got<score_turn>()[0].scored);
  BOOST_TEST(packed_temperature() == 2.0F);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
} // namespace millrace::test
