// SPDX-License-Identifier: Apache-2.0
#include "tests/support/golden_case.hpp"

namespace millrace::test {
namespace {

using kind = case_outcome::kind;

case_outcome changed(std::string_view file, std::string_view from, std::string_view to) {
  return run_changed(run_loss_case, file, from, to);
}

BOOST_AUTO_TEST_SUITE(loss_cases)

BOOST_AUTO_TEST_CASE(every_vector_passes) {
  int passed = 0;
  for (const auto &entry : std::filesystem::directory_iterator(golden_folder / "loss")) {
    const auto outcome = run_text(run_loss_case, text_of_file(entry.path()));
    BOOST_TEST_CONTEXT(entry.path().filename() << ": " << outcome.why) {
      BOOST_TEST((outcome.verdict == kind::passed));
    }
    passed += outcome.verdict == kind::passed ? 1 : 0;
  }
  BOOST_TEST(passed == 46);
}

BOOST_AUTO_TEST_CASE(a_float64_loss_is_held_to_ten_digits) {
  const auto outcome =
      changed("loss/ce_outside_loss_mask.json", "-0.4505585529990507", "-0.4505585519990507");
  BOOST_TEST((outcome.verdict == kind::failed));
  BOOST_TEST(outcome.why.starts_with("expected.float64.loss: "), outcome.why);
}

BOOST_AUTO_TEST_CASE(a_float32_gradient_is_held_to_six_digits_and_named) {
  const auto outcome =
      changed("loss/ce_outside_loss_mask.json", "-0.23648333549499512", "-0.23648133549499512");
  BOOST_TEST((outcome.verdict == kind::failed));
  BOOST_TEST(outcome.why.starts_with("expected.float32.grad_trainer_logprobs[3]: "), outcome.why);
}

BOOST_AUTO_TEST_CASE(another_metric_or_an_unknown_or_missing_one_fails) {
  BOOST_TEST((changed("loss/ce_outside_loss_mask.json", "\"is_masked\":[0.25", "\"is_masked\":[0.5")
                  .verdict == kind::failed));
  BOOST_TEST(
      (changed("loss/ce_outside_loss_mask.json", "\"nll\":", "\"nlm\":").verdict == kind::failed));
  BOOST_TEST((changed("loss/rl_stream_all_zero.json", "\"metrics\":{}", "\"metrics\":{\"nll\":[]}")
                  .verdict == kind::failed));
  BOOST_TEST(
      (changed("loss/all_streams_all_zero.json", "\"loss\":0.0,\"metrics\":{}", "\"loss\":0.0")
           .verdict == kind::failed));
}

BOOST_AUTO_TEST_CASE(an_accepted_input_that_should_be_refused_fails) {
  BOOST_TEST((changed("loss/kl_off.json", "\"expected\":", "\"expected_error\":\"none\",\"other\":")
                  .verdict == kind::failed));
}

BOOST_AUTO_TEST_CASE(a_refused_input_that_should_be_accepted_fails_with_the_reason) {
  const auto outcome =
      changed("loss/error_ref_kl_without_reference.json", "expected_error", "expected");
  BOOST_TEST((outcome.verdict == kind::failed));
  BOOST_TEST(outcome.why.starts_with("sequence 0: token 0"), outcome.why);
}

BOOST_AUTO_TEST_CASE(a_change_of_an_export_is_found_and_named) {
  const std::pair<std::string_view, std::string_view> edits[] = {
      {"\"schema_version\":1", "\"schema_version\":2"},
      {"\"step\":7", "\"step\":8"},
      {"\"micro_sequence_idx\":1", "\"micro_sequence_idx\":0"},
      {"\"env_name\":\"code\"", "\"env_name\":\"math\""},
      {"\"token_ids\":[122", "\"token_ids\":[123"},
      {"\"loss_mask\":[true", "\"loss_mask\":[false"},
      {"\"entropy\":[0.0", "\"entropy\":[0.0000001"},
      {"\"importance_ratio\":[1.897666573524475", "\"importance_ratio\":[1.897669573524475"},
      {"\"is_masked\":[false", "\"is_masked\":[null"},
      {"\"rl_weights\":[null", "\"rl_weights\":[0.0"},
      {"\"ce_weights\":[null,", "\"ce_weights\":["},
  };
  for (const auto &[from, to] : edits) {
    const auto outcome = changed("loss/export_default.json", from, to);
    const auto field = from.substr(1, from.find('"', 1) - 1);
    BOOST_TEST_CONTEXT(from << ": " << outcome.why) {
      BOOST_TEST((outcome.verdict == kind::failed));
      BOOST_TEST(outcome.why.find(field) != std::string::npos);
    }
  }
}

BOOST_AUTO_TEST_CASE(an_export_field_too_many_or_too_few_fails) {
  BOOST_TEST((changed("loss/export_default.json", "\"rank\":0,\"micro_step\":2,\"micro_seq",
                      "\"micro_step\":2,\"micro_seq")
                  .verdict == kind::failed));
  BOOST_TEST((changed("loss/export_default.json", "\"rank\":0,\"micro_step\":2,\"micro_seq",
                      "\"rank\":0,\"more\":1,\"micro_step\":2,\"micro_seq")
                  .verdict == kind::failed));
}

BOOST_AUTO_TEST_CASE(a_file_that_is_no_case_fails_even_if_an_error_is_expected) {
  BOOST_TEST((run_text(run_loss_case, "{}").verdict == kind::failed));
  BOOST_TEST((run_text(run_loss_case, R"({"kind":"token_export"})").verdict == kind::failed));
  BOOST_TEST(
      (run_text(run_loss_case, R"({"batch":{},"expected_error":"x"})").verdict == kind::failed));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
} // namespace millrace::test
