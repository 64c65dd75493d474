// SPDX-License-Identifier: Apache-2.0
#include "schema/import/traces.hpp"

#include <string>

#include <boost/test/unit_test.hpp>

#include "tests/unit/schema/import/imported.hpp"

using namespace millrace;
using namespace millrace::test;
using wire::EpisodeStatus;

namespace {

/// The notes of importing one record with a piece of it replaced.
std::string notes_with(std::string_view piece, std::string_view by) {
  return import_all(with(episode_record("e"), piece, by)).notes();
}

} // namespace

BOOST_AUTO_TEST_SUITE(traces)

BOOST_AUTO_TEST_CASE(an_episode_comes_back_with_all_that_it_said) {
  const auto got = import_all(with(episode_record("e"), R"("ok":true,)",
                                   R"("run":{"id":"r1","type":"train","work":{"type":"train",)"
                                   R"("step":3,"policy":{"start":2,"end":4}}},"ok":true,)"));
  BOOST_REQUIRE(got.episodes.size() == 1);
  const auto &episode = got.episodes[0];
  BOOST_TEST(key_of(*episode.head().key()).text() == "maths/k/g0 of run r1");
  BOOST_TEST(episode.head().first_version() == 2);
  BOOST_TEST(episode.head().last_version() == 4);
  BOOST_TEST(!episode.head().frozen());
  const auto nodes = episode.nodes(0);
  BOOST_REQUIRE(nodes.size() == 2);
  BOOST_TEST(nodes[0].parent == -1);
  BOOST_TEST(nodes[1].parent == 0);
  BOOST_TEST(nodes[1].role == "assistant");
  BOOST_TEST(nodes[1].sampled);
  BOOST_TEST(count_true(nodes[1].mask) == 2);
  BOOST_TEST(nodes[1].logprobs[0] == -0.5F);
  const auto &trace = *episode.finish().traces()->Get(0);
  BOOST_TEST(text_of(trace.agent()) == "solver");
  BOOST_TEST(trace.reward() == 1.0);
  BOOST_TEST(trace.output_tokens() == 2);
  BOOST_TEST(trace.total_tokens() == 5);
  BOOST_TEST(trace.turns() == 1);
  BOOST_TEST(got.text(0, 1) == "say");
}

BOOST_AUTO_TEST_CASE(optional_streams_come_along) {
  const auto got =
      import_all(with(episode_record("e"), R"("logprobs":[-0.5,0.0])",
                      R"("logprobs":[-0.5,0.0],"advantages":[1,2],"reference_logprobs":[-1,-2],)"
                      R"("loss_weights":{"ce":[0,0.5,0.5],"other":["x"]})"));
  const auto node = got.episodes.at(0).node(0, 1);
  BOOST_TEST((*node.advantages)[1] == 2);
  BOOST_TEST((*node.reference_logprobs)[1] == -2);
  BOOST_TEST((*node.ce_weights)[2] == 0.5);
  BOOST_TEST(!node.rl_weights);
}

BOOST_AUTO_TEST_CASE(an_episode_that_says_it_failed_is_errored_with_its_tokens) {
  const auto got = import_all(with(
      episode_record("e"), R"("ok":true,"errors":[])",
      R"("ok":false,"errors":[{"type":"A","message":"x"},{"type":"TimeoutError","message":"after 60 s"}])"));
  BOOST_TEST((got.status(0) == EpisodeStatus::Errored));
  BOOST_TEST(got.reason(0) == "TimeoutError: after 60 s");
  BOOST_TEST(got.episodes[0].tokens() == 5);
}

BOOST_AUTO_TEST_CASE(an_episode_that_failed_without_traces_is_errored) {
  const auto got = import_all(
      R"({"id":"e","env":{"name":"maths"},"task":{"key":"k"},"group":{"id":"g"},"ok":false})");
  BOOST_TEST((got.status(0) == EpisodeStatus::Errored));
  BOOST_TEST(got.reason(0) == "the record says ok: false");
}

BOOST_AUTO_TEST_CASE(an_episode_that_went_well_after_errors_is_ok) {
  const auto got = import_all(with(episode_record("e"), R"("ok":true,"errors":[])",
                                   R"("ok":true,"errors":[{"type":"A","message":"tried again"}])"));
  BOOST_TEST((got.status(0) == EpisodeStatus::Ok));
}

BOOST_AUTO_TEST_CASE(an_errored_episode_with_broken_tokens_stays_errored_without_them) {
  const auto got =
      import_all(with(with(episode_record("e"), R"("ok":true)", R"("ok":false)"), "[1,2]", "[1]"));
  BOOST_TEST((got.status(0) == EpisodeStatus::Errored));
  BOOST_TEST(got.episodes[0].tokens() == 0);
  BOOST_TEST(got.notes() == "1: traces[0].nodes[0]: mask has 2 values for 1 token ids; the errored "
                            "episode is kept without tokens");
}

BOOST_AUTO_TEST_CASE(compact_arrays_of_another_length_are_refused_with_node_and_both_lengths) {
  BOOST_TEST(notes_with("[-0.5,0.0]", "[-0.5]") ==
             "1: traces[0].nodes[1]: logprobs has 1 values for 2 true mask entries");
  BOOST_TEST(notes_with("[-0.5,0.0]", "[-0.5,0.0,0.0]") ==
             "1: traces[0].nodes[1]: logprobs has 3 values for 2 true mask entries");
  BOOST_TEST(notes_with("[-0.5,0.0]", "[]") ==
             "1: traces[0].nodes[1]: logprobs has 0 values for 2 true mask entries");
  BOOST_TEST(notes_with(R"("logprobs":[-0.5,0.0])", R"("logprobs":[-1,-1],"advantages":[1])") ==
             "1: traces[0].nodes[1]: advantages has 1 values for 2 true mask entries");
}

BOOST_AUTO_TEST_CASE(a_mask_of_another_length_is_refused_with_both_lengths) {
  BOOST_TEST(notes_with("[false,true,true]", "[true,true]") ==
             "1: traces[0].nodes[1]: mask has 2 values for 3 token ids");
}

BOOST_AUTO_TEST_CASE(a_true_mask_on_a_prompt_needs_its_logprob) {
  BOOST_TEST(notes_with("[false,false]", "[false,true]") ==
             "1: traces[0].nodes[0]: logprobs has 0 values for 1 true mask entries");
}

BOOST_AUTO_TEST_CASE(a_sampled_node_without_a_true_mask_is_fine) {
  const auto got = import_all(with(
      with(episode_record("e"), "[false,true,true]", "[false,false,false]"), "[-0.5,0.0]", "[]"));
  BOOST_TEST(got.summary.ok == 1);
}

BOOST_AUTO_TEST_CASE(a_parent_that_does_not_come_before_is_refused) {
  BOOST_TEST(notes_with(R"("parent":0)", R"("parent":1)") ==
             "1: traces[0].nodes[1].parent: 1 does not come before node 1");
  BOOST_TEST(notes_with(R"("parent":0)", R"("parent":-1)") ==
             "1: traces[0].nodes[1].parent: -1 does not come before node 1");
  BOOST_TEST(notes_with(R"("parent":0)", R"("parent":0.0)") ==
             "1: traces[0].nodes[1].parent: 0.0 is not an integer");
}

BOOST_AUTO_TEST_CASE(ids_are_exact_or_refused) {
  BOOST_TEST(notes_with("[3,4,5]", "[3,2147483648,5]") ==
             "1: traces[0].nodes[1].token_ids[1]: 2147483648 is outside -2147483648 to 2147483647");
  BOOST_TEST(notes_with("[3,4,5]", "[3,4294967301,5]").find("4294967301 is outside") !=
             std::string::npos);
  BOOST_TEST(notes_with("[3,4,5]", "[3,4.0,5]") ==
             "1: traces[0].nodes[1].token_ids[1]: 4.0 is not an integer");
  BOOST_TEST(notes_with("[3,4,5]", "[3,-1,5]").find("token_ids[1] is -1") != std::string::npos);
  BOOST_TEST(notes_with("[1,2]", "[-1,2]").find("traces[0].nodes[0]: token_ids[0] is -1") !=
             std::string::npos);
  BOOST_TEST(notes_with("[3,4,5]", "[3,2147483647,5]") == "");
}

BOOST_AUTO_TEST_CASE(null_is_not_a_number) {
  BOOST_TEST(notes_with("[-0.5,0.0]", "[-0.5,null]") ==
             "1: traces[0].nodes[1].logprobs[1]: null is not a number");
  BOOST_TEST(notes_with("[3,4,5]", "[3,null,5]") ==
             "1: traces[0].nodes[1].token_ids[1]: null is not an integer");
  BOOST_TEST(notes_with(R"("score":0.5)", R"("score":null)") ==
             "1: traces[0].rewards.right.score: null is not a number");
}

BOOST_AUTO_TEST_CASE(the_reward_is_the_weighted_sum_over_what_was_given) {
  const auto got = import_all(
      with(episode_record("e"), R"("rewards":{)",
           R"("rewards":{"none":null,"plain":{"score":0.25},"off":{"score":9,"weight":0},)"));
  BOOST_TEST(got.episodes.at(0).finish().traces()->Get(0)->reward() == 1.25);
}

BOOST_AUTO_TEST_CASE(a_trace_whose_rewards_are_all_null_was_not_scored) {
  BOOST_TEST(notes_with(R"({"right":{"score":0.5,"weight":2.0}})", R"({"right":null})") ==
             "1: traces[0].rewards: all are null: nobody scored this trace");
  BOOST_TEST(notes_with(R"({"right":{"score":0.5,"weight":2.0}})", "{}") == "");
}

BOOST_AUTO_TEST_CASE(a_reward_that_is_not_finite_is_refused_naming_its_field) {
  for (const char *score : {"NaN", "-Infinity", "1e999"}) {
    const auto got = import_all(
        with(episode_record("e"), R"("score":0.5)", fmt::format(R"("score":{})", score)));
    BOOST_TEST((got.status(0) == EpisodeStatus::Rejected));
    BOOST_TEST(got.notes().find(fmt::format("1: traces[0].rewards.right.score: {} ", score)) == 0);
  }
  BOOST_TEST(notes_with(R"("score":0.5,"weight":2.0)", R"("score":1e308,"weight":10)")
                 .find("traces[0].rewards: their sum is inf") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_hint_comes_from_the_task_unless_the_trace_has_its_own) {
  const auto hints = [](std::string_view info) {
    auto text = with(episode_record("e"), R"("task":{"type":"T","data":{)",
                     R"("task":{"opsd_hint":"of the task","type":"T","data":{)"
                     R"("opsd_hint_token_ids":[7,8])");
    const auto got = import_all(with(text, R"("rewards":{)", std::string(info) + R"("rewards":{)"));
    BOOST_REQUIRE_MESSAGE(got.notes() == "", got.notes());
    const auto &trace = *got.episodes.at(0).finish().traces()->Get(0);
    std::string out(text_of(trace.hint()));
    for (auto id : span_of(trace.hint_token_ids()))
      out += fmt::format(" {}", id);
    return out;
  };
  BOOST_TEST(hints("") == "of the task 7 8");
  BOOST_TEST(hints(R"("info":{"opsd_hint_token_ids":[9],"other":1},)") == "of the task 9");
  BOOST_TEST(hints(R"("info":{"opsd_hint":"its own"},)") == "its own 7 8");
  BOOST_TEST(hints(R"("info":"free text",)") == "of the task 7 8");
}

BOOST_AUTO_TEST_CASE(a_hint_that_is_broken_rejects_the_episode_naming_its_field) {
  BOOST_TEST(
      notes_with(R"("rewards":{)", R"("info":{"opsd_hint_token_ids":[1,"x"]},"rewards":{)") ==
      "1: traces[0].info.opsd_hint_token_ids[1]: a string is not an integer");
  BOOST_TEST(notes_with(R"("rewards":{)", R"("info":{"opsd_hint":NaN},"rewards":{)")
                 .find("1: traces[0].info.opsd_hint: NaN") == 0);
}

BOOST_AUTO_TEST_CASE(a_metric_that_is_not_finite_does_not_cost_a_good_reward) {
  const auto got = import_all(with(episode_record("e"), R"("m":1.0)", R"("m":NaN)"));
  BOOST_TEST((got.status(0) == EpisodeStatus::Ok));
  BOOST_TEST(got.episodes[0].finish().traces()->Get(0)->reward() == 1.0);
  BOOST_TEST(got.notes() ==
             "1: traces[0].metrics.m: NaN is not a JSON number; ignored, import does not need it");
}

BOOST_AUTO_TEST_CASE(an_episode_without_a_policy_was_sampled_by_a_frozen_model) {
  const auto got =
      import_all(with(episode_record("e"), R"("ok":true,)",
                      R"("run":{"id":"r1","work":{"type":"train","step":3}},"ok":true,)"));
  BOOST_TEST(got.episodes.at(0).head().frozen());
}

BOOST_AUTO_TEST_CASE(image_tokens_without_their_images_are_refused) {
  const auto map = [](int id) {
    return fmt::format(R"("mm_token_type_id_map":{{"{}":1}},"rewards")", id);
  };
  BOOST_TEST(notes_with(R"("rewards")", map(4)) ==
             "1: traces[0]: node 1 has image tokens (4), and trace files do not hold images");
  BOOST_TEST(notes_with(R"("rewards")", map(99)) == "");
}

BOOST_AUTO_TEST_CASE(a_record_that_names_no_environment_or_group_is_refused) {
  BOOST_TEST(notes_with(R"("env":{"id":"maths"})", R"("env":{})") ==
             "1: env.name: is missing, and so is env.id");
  BOOST_TEST(notes_with(R"("id":"maths")", R"("id":"all")") ==
             "1: env.name: 'all' is reserved; give the environment another name");
  BOOST_TEST(notes_with(R"("task":{"type":"T","data":{},"key":"k"},"group":{"id":"g0"},)", "") ==
             "1: group.id: is missing, and task.key does not stand in for it");
}

BOOST_AUTO_TEST_SUITE_END()
