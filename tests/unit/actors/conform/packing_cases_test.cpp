// SPDX-License-Identifier: Apache-2.0
#include "tests/support/golden_case.hpp"

namespace millrace::test {
namespace {

using kind = case_outcome::kind;

case_outcome changed(std::string_view file, std::string_view from, std::string_view to) {
  return run_changed(run_packing_case, file, from, to);
}

BOOST_AUTO_TEST_SUITE(packing_cases)

BOOST_AUTO_TEST_CASE(a_change_of_any_field_is_found_and_named) {
  // In the last micro batch of a case that has a bit of everything.
  const std::pair<std::string_view, std::string_view> edits[] = {
      {"\"input_ids\":[830", "\"input_ids\":[831"},
      {"\"loss_mask\":[false", "\"loss_mask\":[true"},
      {"\"advantages\":[0.0", "\"advantages\":[0.25"},
      {"\"inference_logprobs\":[0.0", "\"inference_logprobs\":[0.25"},
      {"\"position_ids\":[0", "\"position_ids\":[1"},
      {"\"temperatures\":[0.5", "\"temperatures\":[0.75"},
      {"\"sequence_lengths\":[8", "\"sequence_lengths\":[7"},
      {"\"seq_lens\":[8", "\"seq_lens\":[7"},
      {"\"env_names\":[\"tool-use\"", "\"env_names\":[\"math\""},
      {"\"padding\":0", "\"padding\":1"},
      {"\"ref_logprobs\":null", "\"ref_logprobs\":[0,0,0,0,0,0,0,0]"},
      {"\"rl_weights\":[0.0", "\"rl_weights\":[1.0"},
      {"\"ce_weights\":null", "\"ce_weights\":[0,0,0,0,0,0,0,0]"},
      {"\"ref_kl_weights\":null", "\"ref_kl_weights\":[0,0,0,0,0,0,0,0]"},
      {"\"routed_experts\":null",
       "\"routed_experts\":{\"shape\":[1,1,1],\"dtype\":\"uint8\",\"data_hex\":\"00\"}"},
      {"\"mm_kwargs\":null", "\"mm_kwargs\":{}"},
      {"\"mm_token_type_ids\":null", "\"mm_token_type_ids\":[0,0,0,0,0,0,0,0]"},
  };
  for (const auto &[from, to] : edits) {
    const auto outcome = changed("packing/everything_mixed.json", from, to);
    const auto field = from.substr(1, from.find('"', 1) - 1);
    BOOST_TEST_CONTEXT(from << ": " << outcome.why) {
      BOOST_TEST((outcome.verdict == kind::failed));
      BOOST_TEST(outcome.why.find(field) != std::string::npos);
    }
  }
}

BOOST_AUTO_TEST_CASE(other_bytes_of_images_and_experts_are_found) {
  BOOST_TEST((
      changed("packing/images_cut_at_image_boundary.json", "\"data_hex\":\"01", "\"data_hex\":\"02")
          .verdict == kind::failed));
  BOOST_TEST((changed("packing/experts_int16_truncated.json", "\"dtype\":\"int16\"",
                      "\"dtype\":\"float16\"")
                  .verdict == kind::failed));
}

BOOST_AUTO_TEST_CASE(a_missing_rank_is_found) {
  BOOST_TEST((changed("packing/no_samples.json", "[[],[],[]]", "[[],[]]").verdict == kind::failed));
}

BOOST_AUTO_TEST_CASE(an_accepted_input_that_should_be_refused_fails) {
  BOOST_TEST((changed("packing/one_rank_basic.json",
                      "\"expected\":", "\"expected_error\":\"none\",\"other\":")
                  .verdict == kind::failed));
}

BOOST_AUTO_TEST_CASE(a_refused_input_that_should_be_accepted_fails_with_the_reason) {
  const auto outcome = changed("packing/error_experts_rows.json", "expected_error", "expected");
  BOOST_TEST((outcome.verdict == kind::failed));
  BOOST_TEST(outcome.why.find("32 bytes") != std::string::npos, outcome.why);
}

BOOST_AUTO_TEST_CASE(a_file_that_is_no_case_fails_even_if_an_error_is_expected) {
  BOOST_TEST((run_text(run_packing_case, "{}").verdict == kind::failed));
  BOOST_TEST(
      (run_text(run_packing_case, R"({"samples":[{}],"params":{},"expected_error":"x"})").verdict ==
       kind::failed));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
} // namespace millrace::test
