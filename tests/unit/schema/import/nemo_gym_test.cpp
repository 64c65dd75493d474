// SPDX-License-Identifier: Apache-2.0
#include "schema/import/nemo_gym.hpp"

#include <string>

#include <boost/test/unit_test.hpp>

#include "tests/unit/schema/import/imported.hpp"

using namespace millrace;
using namespace millrace::test;
using wire::EpisodeStatus;

BOOST_AUTO_TEST_SUITE(nemo_gym)

BOOST_AUTO_TEST_CASE(a_rollout_becomes_a_prompt_node_and_a_sampled_node) {
  const auto got = import_all(rollout_record(7, 3));
  BOOST_REQUIRE(got.episodes.size() == 1);
  const auto &episode = got.episodes[0];
  BOOST_TEST(key_of(*episode.head().key()).text() == "agent/7/0");
  BOOST_TEST(episode.id() == "3");
  BOOST_REQUIRE(episode.node_count(0) == 2);
  BOOST_TEST(episode.node(0, 0).token_ids.size() == 3);
  BOOST_TEST(count_true(episode.node(0, 0).mask) == 0);
  BOOST_TEST(count_true(episode.node(0, 1).mask) == 2);
  BOOST_TEST(episode.node(0, 1).logprobs[0] == -0.5F);
  BOOST_TEST(episode.finish().traces()->Get(0)->reward() == 1.0);
  BOOST_TEST(got.text(0, 0) == "ask");
  BOOST_TEST(got.text(0, 1) == "think\nsay");
}

BOOST_AUTO_TEST_CASE(slots_in_any_order_become_one_group_by_slot) {
  std::string file;
  for (int slot : {1, 3, 4, 0, 2})
    file += rollout_record(0, slot) + "\n" + rollout_record(1, slot) + "\n";
  const auto got = import_all(file);
  BOOST_REQUIRE(got.groups.size() == 2);
  BOOST_TEST(got.groups[0].second == 5);
  BOOST_TEST(got.ids() == "0 1 2 3 4 0 1 2 3 4");
  BOOST_TEST(got.episodes[0].head().group_size() == 5);
}

BOOST_AUTO_TEST_CASE(a_second_turn_extends_the_first) {
  const auto got = import_all(with(
      rollout_record(0, 0), R"(}]},"reward")",
      R"(},{"type":"function_call_output","output":"42"},{"type":"message","content":[],)"
      R"("prompt_token_ids":[1,2,3,4,5,6],"generation_token_ids":[7],"generation_log_probs":[-1]}]},"reward")"));
  BOOST_REQUIRE(got.episodes.size() == 1);
  const auto nodes = got.episodes[0].nodes(0);
  BOOST_REQUIRE(nodes.size() == 4);
  BOOST_TEST(nodes[2].role == "tool");
  BOOST_TEST(nodes[2].parent == 1);
  BOOST_TEST(nodes[2].token_ids.size() == 1);
  BOOST_TEST(got.text(0, 2) == "42");
  BOOST_TEST(got.episodes[0].finish().traces()->Get(0)->turns() == 2);
}

BOOST_AUTO_TEST_CASE(a_rollout_with_an_exception_is_errored_with_its_reason) {
  const auto got = import_all(with(with(rollout_record(0, 0), R"("reward":1.0)",
                                        R"("reward":0.0,"exception_type":"RuntimeError")"),
                                   R"("output":[)", R"("output":[],"was":[)"));
  BOOST_REQUIRE(got.episodes.size() == 1);
  BOOST_TEST((got.status(0) == EpisodeStatus::Errored));
  BOOST_TEST(got.reason(0) == "RuntimeError");
  BOOST_TEST(got.summary.imported() == 1);
}

BOOST_AUTO_TEST_CASE(an_error_of_the_response_makes_it_errored_and_its_tokens_stay) {
  const auto got =
      import_all(with(rollout_record(0, 0), R"("error":null)", R"("error":{"message":"cut off"})"));
  BOOST_TEST((got.status(0) == EpisodeStatus::Errored));
  BOOST_TEST(got.reason(0) == "cut off");
  BOOST_TEST(got.episodes[0].tokens() == 5);
}

BOOST_AUTO_TEST_CASE(token_arrays_that_are_empty_are_refused_and_count_as_rejected) {
  const auto got = import_all(
      with(with(with(rollout_record(0, 0), "[1,2,3]", "[]"), "[4,5]", "[]"), "[-0.5,0.0]", "[]"));
  BOOST_TEST(got.summary.rejected == 1);
  BOOST_TEST(got.summary.imported() == 0);
  BOOST_TEST((got.status(0) == EpisodeStatus::Rejected));
  BOOST_TEST(got.notes() == "1: response.output[*].generation_token_ids: all are empty, yet the "
                            "record says that it is fine");
  BOOST_TEST(got.reason(0) == "FILE:1: response.output[*].generation_token_ids: all are empty, yet "
                              "the record says that it is fine");
}

BOOST_AUTO_TEST_CASE(an_answer_without_its_prompt_is_refused) {
  const auto got = import_all(with(rollout_record(0, 0), "[1,2,3]", "[]"));
  BOOST_TEST(got.notes() ==
             "1: response.output[1]: 2 generation_token_ids, and prompt_token_ids is empty");
}

BOOST_AUTO_TEST_CASE(logprobs_of_another_length_are_refused_with_both_lengths) {
  for (const char *logprobs : {"[-1]", "[-1,-1,-1]", "[]"}) {
    const auto got = import_all(with(rollout_record(0, 0), "[-0.5,0.0]", logprobs));
    BOOST_TEST(got.summary.rejected == 1);
    BOOST_TEST(got.notes().find("response.output[1]: generation_log_probs has ") !=
               std::string::npos);
    BOOST_TEST(got.notes().find("for 2 generation_token_ids") != std::string::npos);
  }
}

BOOST_AUTO_TEST_CASE(a_reward_of_null_or_none_is_not_zero) {
  BOOST_TEST(
      import_all(with(rollout_record(0, 0), R"("reward":1.0)", R"("reward":null)")).notes() ==
      "1: reward: null is not a number");
  BOOST_TEST(import_all(with(rollout_record(0, 0), R"("reward":1.0,)", "")).notes() ==
             "1: reward: is missing");
}

BOOST_AUTO_TEST_CASE(a_reward_that_is_not_finite_is_refused_and_a_metric_ignored) {
  const auto bad = import_all(with(rollout_record(0, 0), R"("reward":1.0)", R"("reward":NaN)"));
  BOOST_TEST(bad.notes() == "1: reward: NaN is not a JSON number");
  BOOST_TEST((bad.status(0) == EpisodeStatus::Rejected));
  const auto good =
      import_all(with(rollout_record(0, 0), R"("reward":1.0)", R"("reward":1.0,"speed":Infinity)"));
  BOOST_TEST(good.summary.ok == 1);
  BOOST_TEST(good.summary.patched == 1);
  BOOST_TEST(good.notes() ==
             "1: speed: Infinity is not a JSON number; ignored, import does not need it");
}

BOOST_AUTO_TEST_CASE(ids_beyond_int32_or_negative_are_refused_exactly) {
  for (const char *id : {"2147483648", "4294967301", "-1", "18446744073709551621", "2.0", "1e3"})
    for (const char *array : {"[1,2,3]", "[4,5]"}) {
      const auto got = import_all(with(rollout_record(0, 0), array, fmt::format("[7,{}]", id)));
      BOOST_TEST(got.summary.rejected == 1);
      const auto field = array[1] == '1' ? "prompt_token_ids[1]" : "generation_token_ids[1]";
      BOOST_TEST(got.notes().find(field) != std::string::npos);
    }
  BOOST_TEST(import_all(with(rollout_record(0, 0), "[1,2,3]", "[2147483647]")).summary.ok == 1);
}

BOOST_AUTO_TEST_CASE(a_rollout_without_a_task_is_refused) {
  BOOST_TEST(import_all(with(rollout_record(0, 0), R"("_ng_task_index":0,)", "")).notes() ==
             "1: _ng_task_index: is missing: which group it belongs to is unknown");
}

BOOST_AUTO_TEST_SUITE_END()
