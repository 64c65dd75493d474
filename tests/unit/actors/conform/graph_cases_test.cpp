// SPDX-License-Identifier: Apache-2.0
#include "actors/conform/cases.hpp"

#include <filesystem>

#include <boost/test/unit_test.hpp>

#include "tests/support/golden_case.hpp"

namespace millrace::test {
namespace {

BOOST_AUTO_TEST_SUITE(graph_cases)

BOOST_AUTO_TEST_CASE(every_vector_passes) {
  int passed = 0;
  for (const auto &entry : std::filesystem::directory_iterator(golden_folder / "graph")) {
    const auto text = text_of_file(entry.path());
    const auto outcome = run_text(run_graph_case, text);
    BOOST_TEST_CONTEXT(entry.path().filename() << ": " << outcome.why) {
      BOOST_TEST((outcome.verdict == case_outcome::kind::passed));
    }
    passed += outcome.verdict == case_outcome::kind::passed ? 1 : 0;
  }
  BOOST_TEST(passed == 92);
}

BOOST_AUTO_TEST_CASE(another_weight_after_pruning_fails_and_is_named) {
  const auto outcome = run_changed(run_graph_case, "graph/prune_part_of_the_tokens.json",
                                   "\"rl_weights\":[0.0", "\"rl_weights\":[1.0");
  BOOST_TEST((outcome.verdict == case_outcome::kind::failed));
  BOOST_TEST(outcome.why.starts_with("expected.traces[0].after_prune[0].rl_weights[0]: 0"));
}

BOOST_AUTO_TEST_CASE(another_advantage_fails) {
  BOOST_TEST((run_changed(run_graph_case, "graph/grpo_group.json",
                          "\"scalar_advantage\":", "\"scalar_advantage\":1")
                  .verdict == case_outcome::kind::failed));
}

BOOST_AUTO_TEST_CASE(an_accepted_input_that_should_be_refused_fails) {
  BOOST_TEST((run_changed(run_graph_case, "graph/linear_two_turns.json",
                          "\"expected\":", "\"expected_error\":\"none\",\"other\":")
                  .verdict == case_outcome::kind::failed));
}

BOOST_AUTO_TEST_CASE(a_file_that_is_no_case_fails) {
  BOOST_TEST((run_text(run_graph_case, "{}").verdict == case_outcome::kind::failed));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
} // namespace millrace::test
