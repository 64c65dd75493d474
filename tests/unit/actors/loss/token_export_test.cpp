// SPDX-License-Identifier: Apache-2.0
#include "actors/loss/token_export.hpp"

#include <limits>

#include "runtime/json.hpp"
#include "tests/unit/actors/loss/sample_columns.hpp"

namespace millrace::test {
namespace {

constexpr auto infinity = std::numeric_limits<float>::infinity();
using flags = std::vector<std::uint8_t>;

struct sample_export : sample_columns {
  floats entropy{0.5F, 1.0F, 1.5F, 2.0F, 2.5F};
  std::vector<std::int64_t> input_ids{10, 11, 12, 13, 14};
  std::vector<std::int64_t> position_ids{0, 1, 2, 0, 1};
  std::vector<std::string> env_names{"math", "code"};
  std::int64_t padding = 0;
  export_place place{.step = 7, .rank = 1, .micro_step = 2, .written = 0};

  result<std::vector<token_record>> try_records() const {
    const floats trainer(trainer_logprobs.begin(), trainer_logprobs.end());
    return token_records({.loss = columns(),
                          .trainer_logprobs = trainer,
                          .entropy = entropy,
                          .input_ids = input_ids,
                          .position_ids = position_ids,
                          .env_names = env_names,
                          .padding = padding},
                         config, place);
  }
  std::vector<token_record> records() const {
    auto out = try_records();
    BOOST_REQUIRE_MESSAGE(out, out.error().message);
    return std::move(*out);
  }
  std::string refusal() const {
    const auto out = try_records();
    BOOST_TEST_REQUIRE(!out.has_value());
    return out.error().message;
  }
};

/// One of the records' fields, read from its line.
template <class T> T read_back(const token_record &record, std::string_view key) {
  const auto line = json_line(record);
  BOOST_TEST((line.find('\n') == line.size() - 1));
  json::document reader;
  const auto root = reader.parse(line);
  BOOST_REQUIRE_MESSAGE(root, root.error().message);
  auto value = root->get<T>(key);
  BOOST_REQUIRE_MESSAGE(value, value.error().message);
  return std::move(*value);
}

/// Whether a column of the line is nothing but nulls, one for each token.
bool is_null(const token_record &record, std::string_view key) {
  const auto line = json_line(record);
  json::document reader;
  const auto items = reader.parse(line)->get<json::value>(key)->items();
  return items->size() == record.token_ids.size() &&
         std::all_of(items->begin(), items->end(), [](const auto &item) { return item.is_null(); });
}

BOOST_AUTO_TEST_SUITE(token_export_suite)

BOOST_FIXTURE_TEST_CASE(padding_is_cut_from_the_last_sequence, sample_export) {
  padding = 1;
  const auto out = records();
  BOOST_TEST(out[0].token_ids.size() == 3U);
  BOOST_TEST((out[1].token_ids == std::vector<std::int64_t>{13}));
  BOOST_TEST(out[1].importance_ratio->size() == 1U);
}

BOOST_FIXTURE_TEST_CASE(a_mask_in_the_padding_makes_no_record, sample_export) {
  loss_mask = {1, 0, 0, 0, 1};
  padding = 1;
  BOOST_TEST(records().size() == 1U);
}

BOOST_FIXTURE_TEST_CASE(records_are_counted_on_and_sequences_by_place, sample_export) {
  loss_mask = {0, 0, 0, 1, 1};
  place.written = 40;
  const auto out = records();
  BOOST_TEST_REQUIRE(out.size() == 1U);
  BOOST_TEST(out[0].micro_sequence_idx == 1U);
  BOOST_TEST(out[0].export_sequence_idx == 40U);
  BOOST_TEST(out[0].env_name == "code");
}

BOOST_FIXTURE_TEST_CASE(hits_count_under_the_mask_only_and_by_the_sign, sample_export) {
  loss_mask = {1, 1, 0, 1, 1};
  trainer_logprobs = {0, -2, 0, -2, -2};
  inference_logprobs = {-2, 0, -2, 0, 0};
  advantages = {1, -1, 1, 0, 1};
  const auto out = records();
  BOOST_TEST((*out[0].is_masked == flags{1, 1, 0}));
  BOOST_TEST((*out[0].is_masked_high == flags{1, 0, 0}));
  BOOST_TEST((*out[0].is_masked_low == flags{0, 1, 0}));
  BOOST_TEST((*out[1].is_masked == flags{1, 0}));
  BOOST_TEST((*out[1].is_masked_low == flags{0, 0}));
}

BOOST_FIXTURE_TEST_CASE(another_rl_term_has_ratios_and_no_hits, sample_export) {
  config.rl = rl_kind::ipo;
  const auto out = records();
  BOOST_TEST(out[0].mismatch_kl.has_value());
  BOOST_TEST(!out[0].is_masked.has_value());
  BOOST_TEST(is_null(out[0], "is_masked_high"));
}

BOOST_FIXTURE_TEST_CASE(nothing_trained_by_a_ratio_has_none, sample_export) {
  rl_weights = floats(5, 0.0F);
  ce_weights = floats(5, 1.0F);
  const auto out = records();
  for (const auto *key : {"mismatch_kl", "log_importance_ratio", "importance_ratio", "prob_delta",
                          "is_masked", "is_masked_high", "is_masked_low", "ref_kl_weights"})
    BOOST_TEST(is_null(out[0], key), key);
  BOOST_TEST(!is_null(out[0], "ce_weights"));
}

BOOST_FIXTURE_TEST_CASE(a_ref_kl_weight_anywhere_brings_ratios_back, sample_export) {
  rl_weights = floats(5, 0.0F);
  ref_kl_weights = floats{0, 0, 0, 0, 1};
  BOOST_TEST(records()[0].importance_ratio.has_value());
}

BOOST_FIXTURE_TEST_CASE(a_line_reads_back_as_the_record, sample_export) {
  const auto out = records();
  BOOST_TEST(read_back<std::int64_t>(out[1], "schema_version") == 1);
  BOOST_TEST(read_back<std::int64_t>(out[1], "step") == 7);
  BOOST_TEST(read_back<std::int64_t>(out[1], "export_sequence_idx") == 1);
  BOOST_TEST(read_back<std::string>(out[1], "env_name") == "code");
  BOOST_TEST((read_back<flags>(out[1], "loss_mask") == flags{1, 1}));
  BOOST_TEST((read_back<floats>(out[1], "prob_delta") == *out[1].prob_delta));
}

BOOST_FIXTURE_TEST_CASE(values_that_are_not_finite_are_null_in_the_line, sample_export) {
  inference_logprobs[1] = -infinity;
  entropy[2] = std::numeric_limits<float>::quiet_NaN();
  const auto out = records();
  json::document reader;
  const auto line = json_line(out[0]);
  const auto root = reader.parse(line);
  BOOST_REQUIRE_MESSAGE(root, root.error().message);
  BOOST_TEST(root->get<json::value>("importance_ratio")->items()->at(1).is_null());
  BOOST_TEST(root->get<json::value>("entropy")->items()->at(2).is_null());
  BOOST_TEST(!root->get<json::value>("entropy")->items()->at(1).is_null());
}

BOOST_FIXTURE_TEST_CASE(columns_and_padding_that_do_not_fit_are_refused_by_name, sample_export) {
  padding = 3;
  BOOST_TEST(refusal() == "padding is 3, and the last sequence has 2 tokens");
  padding = -1;
  BOOST_TEST(refusal() == "padding is -1, and the last sequence has 2 tokens");
  padding = 0;
  env_names.pop_back();
  BOOST_TEST(refusal() == "env_names has 1 names for 2 sequences");
  position_ids.pop_back();
  BOOST_TEST(refusal() == "position_ids has 4 values for 5 tokens");
  input_ids.pop_back();
  BOOST_TEST(refusal() == "input_ids has 4 values for 5 tokens");
  entropy.pop_back();
  BOOST_TEST(refusal() == "entropy has 4 values for 5 tokens");
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
} // namespace millrace::test
