// SPDX-License-Identifier: Apache-2.0
#include "schema/node.hpp"

#include <cmath>
#include <limits>

#include <boost/test/unit_test.hpp>

#include "runtime/random.hpp"

namespace millrace {
namespace {

/// A model turn of five trainable tokens, as vectors that a case can break.
struct node_values {
  std::vector<std::int32_t> token_ids{10, 11, 12, 13, 14};
  std::vector<std::uint8_t> mask{1, 1, 1, 1, 1};
  std::vector<std::uint8_t> is_content;
  std::vector<float> logprobs{-1, -2, 0, -4, -5};

  node_view view() const {
    node_view out;
    out.sampled = true;
    out.token_ids = token_ids;
    out.mask = mask;
    out.is_content = is_content;
    out.logprobs = logprobs;
    return out;
  }
};

/// The message of the check; empty if it passes.
std::string verdict(const node_view &node, std::uint32_t vocab_size = 100) {
  const auto checked = check_node(node, vocab_size);
  return checked ? "" : checked.error().message;
}

bool says(const std::string &message, std::initializer_list<std::string> words) {
  for (const auto &word : words)
    if (message.find(word) == std::string::npos)
      return false;
  return !message.empty();
}

BOOST_AUTO_TEST_CASE(a_whole_node_passes) { BOOST_TEST(verdict(node_values().view()) == ""); }

BOOST_AUTO_TEST_CASE(a_node_without_tokens_passes) { BOOST_TEST(verdict({}) == ""); }

BOOST_AUTO_TEST_CASE(logprobs_of_another_count_than_the_true_mask_are_refused_with_both_lengths) {
  for (const std::size_t count : {4U, 6U, 0U}) {
    node_values node;
    node.logprobs.resize(count, -1);
    BOOST_TEST(says(verdict(node.view()), {"logprobs", std::to_string(count), "5"}));
  }
}

BOOST_AUTO_TEST_CASE(a_mask_of_another_length_than_the_tokens_is_refused_with_both_lengths) {
  for (const std::size_t count : {4U, 6U, 0U}) {
    node_values node;
    node.mask.resize(count, 1);
    BOOST_TEST(says(verdict(node.view()), {"mask", std::to_string(count), "5"}));
  }
}

BOOST_AUTO_TEST_CASE(an_echo_mask_has_a_zero_or_a_one_for_each_token) {
  node_values node;
  for (const std::size_t count : {4U, 6U, 0U}) {
    const std::vector<std::uint8_t> mask(count, 1);
    auto view = node.view();
    view.echo_mask = mask;
    BOOST_TEST(says(verdict(view), {"echo_mask", std::to_string(count), "5"}));
  }
  std::vector<std::uint8_t> mask{0, 1, 0, 1, 1};
  auto view = node.view();
  view.echo_mask = mask;
  BOOST_TEST(verdict(view) == "");
  mask[2] = 2;
  BOOST_TEST(says(verdict(view), {"echo_mask", "other than 0 and 1"}));
}

BOOST_AUTO_TEST_CASE(a_sampled_node_without_a_true_mask_needs_no_logprobs) {
  node_values node;
  node.mask.assign(5, 0);
  BOOST_TEST(says(verdict(node.view()), {"logprobs", "5", "0"}));
  node.logprobs.clear();
  BOOST_TEST(verdict(node.view()) == "");
}

BOOST_AUTO_TEST_CASE(a_prompt_with_one_true_mask_entry_needs_one_logprob) {
  node_values node;
  auto view = node.view();
  node.mask = {0, 0, 1, 0, 0};
  node.logprobs = {-1};
  view = node.view();
  view.sampled = false;
  BOOST_TEST(verdict(view) == "");
}

BOOST_AUTO_TEST_CASE(flags_other_than_0_and_1_are_refused) {
  node_values node;
  node.mask[2] = 2;
  BOOST_TEST(says(verdict(node.view()), {"mask"}));
  node.mask[2] = 1;
  node.is_content = {0, 1, 255, 1, 1};
  BOOST_TEST(says(verdict(node.view()), {"is_content"}));
  node.is_content = {0, 1};
  BOOST_TEST(says(verdict(node.view()), {"is_content", "2", "5"}));
}

BOOST_AUTO_TEST_CASE(ids_outside_the_vocabulary_are_refused_with_place_and_value) {
  constexpr auto most = std::numeric_limits<std::int32_t>::max();
  constexpr auto least = std::numeric_limits<std::int32_t>::min();
  for (const bool sampled : {true, false}) {
    for (const auto id : {100, 101, most, -1, least}) {
      node_values node;
      node.token_ids[3] = id;
      auto view = node.view();
      view.sampled = sampled;
      BOOST_TEST(says(verdict(view), {"token_ids[3]", std::to_string(id), "100"}));
    }
    node_values node;
    node.token_ids = {0, 1, 50, 98, 99};
    BOOST_TEST(verdict(node.view()) == "");
  }
}

BOOST_AUTO_TEST_CASE(without_a_vocabulary_only_negative_ids_are_refused) {
  node_values node;
  node.token_ids[0] = std::numeric_limits<std::int32_t>::max();
  BOOST_TEST(verdict(node.view(), 0) == "");
  node.token_ids[0] = -1;
  BOOST_TEST(says(verdict(node.view(), 0), {"token_ids[0]", "-1"}));
}

BOOST_AUTO_TEST_CASE(values_that_are_not_finite_are_refused_in_every_stream) {
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
        -std::numeric_limits<float>::infinity()}) {
    const std::vector<float> values{0, 1, 2, 3, bad};
    node_values node;
    node.logprobs = values;
    BOOST_TEST(says(verdict(node.view()), {"logprobs[4]"}));
    const std::pair<std::string, std::optional<std::span<const float>> node_view::*> streams[]{
        {"advantages", &node_view::advantages},
        {"reference_logprobs", &node_view::reference_logprobs},
        {"rl_weights", &node_view::rl_weights},
        {"ce_weights", &node_view::ce_weights},
        {"ref_kl_weights", &node_view::ref_kl_weights}};
    for (const auto &[name, field] : streams) {
      const node_values good;
      auto view = good.view();
      view.*field = values;
      BOOST_TEST(says(verdict(view), {name + "[4]"}));
    }
  }
}

BOOST_AUTO_TEST_CASE(extreme_finite_values_pass) {
  node_values node;
  node.logprobs = {std::numeric_limits<float>::lowest(), std::numeric_limits<float>::max(),
                   std::numeric_limits<float>::denorm_min(), -0.0F, 0.0F};
  BOOST_TEST(verdict(node.view()) == "");
}

BOOST_AUTO_TEST_CASE(compact_streams_follow_the_mask_and_weights_the_tokens) {
  node_values node;
  node.mask = {0, 1, 1, 0, 0};
  node.logprobs = {-1, -1};
  const std::vector<float> two(2, 0.5F);
  const std::vector<float> five(5, 0.5F);
  auto view = node.view();
  view.advantages = two;
  view.rl_weights = five;
  BOOST_TEST(verdict(view) == "");
  view.advantages = five;
  BOOST_TEST(says(verdict(view), {"advantages", "5", "2"}));
  view.advantages = two;
  view.rl_weights = two;
  BOOST_TEST(says(verdict(view), {"rl_weights", "2", "5"}));
}

BOOST_AUTO_TEST_CASE(experts_have_three_dimensions_and_one_row_a_token) {
  const node_values node;
  auto view = node.view();
  const std::vector<std::uint64_t> good{5, 2, 2};
  const std::vector<std::uint64_t> short_by_one{4, 2, 2};
  const std::vector<std::uint64_t> flat{5, 4};
  view.routed_experts = array_view{"", dtype::uint8, good, {}};
  BOOST_TEST(verdict(view) == "");
  view.routed_experts->shape = short_by_one;
  BOOST_TEST(says(verdict(view), {"routed_experts", "4", "5"}));
  view.routed_experts->shape = flat;
  BOOST_TEST(says(verdict(view), {"routed_experts", "2 dimensions"}));
}

BOOST_AUTO_TEST_CASE(type_ids_are_as_long_as_the_tokens) {
  const node_values node;
  auto view = node.view();
  const std::vector<std::uint8_t> four(4, 1);
  view.mm_token_type_ids = four;
  BOOST_TEST(says(verdict(view), {"mm_token_type_ids", "4", "5"}));
}

BOOST_AUTO_TEST_CASE(true_entries_are_counted_whatever_the_length) {
  random_source random(3);
  for (std::uint32_t length = 0; length < 6000; length = length < 40 ? length + 1 : length * 5 / 4)
    for (std::uint32_t percent : {0U, 50U, 100U}) {
      std::vector<std::uint8_t> mask(length + 1);
      std::size_t count = 0;
      for (std::size_t i = 1; i < mask.size(); ++i)
        count += mask[i] = random.chance(percent) ? 1 : 0;
      BOOST_TEST(count_true(std::span(mask).subspan(1)) == count, length << " at " << percent);
    }
}

} // namespace
} // namespace millrace
