// SPDX-License-Identifier: Apache-2.0
#include "actors/conform/cases.hpp"

#include <filesystem>
#include <sstream>

#include <boost/test/unit_test.hpp>

#include "tests/support/golden_case.hpp"

namespace millrace::test {
namespace {

constexpr std::string_view mixed_case = R"({"algorithm":"grpo","config":{},"groups":[[
  {"episode_id":"e0","agent":"a","reward":1.0,"num_output_tokens":2,"num_total_tokens":5,
   "num_turns":1,"trainable_tokens":2,"ok":true,"agent_trainable":true},
  {"episode_id":"e1","agent":"a","reward":0.0,"num_output_tokens":2,"num_total_tokens":5,
   "num_turns":1,"trainable_tokens":2,"ok":true,"agent_trainable":true}]],
  "expected":[[@]],"expected_rl_weight":[null]})";

std::string with_expected(std::string_view values) {
  const auto at = mixed_case.find('@');
  std::ostringstream text;
  text << mixed_case.substr(0, at) << values << mixed_case.substr(at + 1);
  return text.str();
}

BOOST_AUTO_TEST_SUITE(scoring_cases)

BOOST_AUTO_TEST_CASE(every_vector_passes) {
  int passed = 0;
  for (const auto &entry : std::filesystem::directory_iterator(golden_folder / "scoring")) {
    const auto outcome = run_text(run_scoring_case, text_of_file(entry.path()));
    BOOST_TEST_CONTEXT(entry.path().filename() << ": " << outcome.why) {
      BOOST_TEST((outcome.verdict == case_outcome::kind::passed));
    }
    passed += outcome.verdict == case_outcome::kind::passed ? 1 : 0;
  }
  BOOST_TEST(passed == 43);
}

BOOST_AUTO_TEST_CASE(a_right_answer_passes) {
  BOOST_TEST((run_text(run_scoring_case, with_expected("0.5,-0.5")).verdict ==
              case_outcome::kind::passed));
}

BOOST_AUTO_TEST_CASE(a_wrong_advantage_fails_and_is_named) {
  const auto outcome = run_text(run_scoring_case, with_expected("0.5,-0.499"));
  BOOST_TEST((outcome.verdict == case_outcome::kind::failed));
  BOOST_TEST(outcome.why == "expected[0][1]: -0.5, expected -0.499");
}

BOOST_AUTO_TEST_CASE(a_null_where_a_score_is_fails) {
  BOOST_TEST((run_text(run_scoring_case, with_expected("0.5,null")).verdict ==
              case_outcome::kind::failed));
}

BOOST_AUTO_TEST_CASE(too_few_results_fail) {
  BOOST_TEST(
      (run_text(run_scoring_case, with_expected("0.5")).verdict == case_outcome::kind::failed));
}

BOOST_AUTO_TEST_CASE(a_file_that_is_no_case_fails) {
  BOOST_TEST((run_text(run_scoring_case, "{}").verdict == case_outcome::kind::failed));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
} // namespace millrace::test
