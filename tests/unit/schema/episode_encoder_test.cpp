// SPDX-License-Identifier: Apache-2.0
#include "schema/episode_encoder.hpp"

#include "schema/limits.hpp"
#include "tests/support/episodes.hpp"

#include <boost/test/unit_test.hpp>

namespace millrace {
namespace {

template <class T> std::vector<T> list(std::span<const T> values) {
  return {values.begin(), values.end()};
}

BOOST_AUTO_TEST_CASE(every_field_of_a_node_comes_back) {
  auto data = test::some_episode();
  auto &node = data.nodes[1];
  node.is_content = {0, 1, 1, 1, 1};
  node.advantages = std::vector<float>(5, 0.25F);
  node.reference_logprobs = std::vector<float>(5, -0.75F);
  node.rl_weights = std::vector<float>(5, 2);
  node.ce_weights = std::vector<float>(5, 3);
  node.ref_kl_weights = std::vector<float>(5, 4);
  node.mm_token_type_ids = std::vector<std::uint8_t>{0, 1, 1, 0, 2};
  node.routed_experts = test::some_experts(5);
  node.tensors.push_back(
      {"image_grid_thw", dtype::int64, {1, 3}, test::bytes_of(std::vector<std::int64_t>{1, 2, 4})});
  const auto frame = test::parsed(data);
  const auto view = frame.node(1);
  BOOST_TEST(list(view.token_ids) == node.token_ids);
  BOOST_TEST(list(view.mask) == node.mask);
  BOOST_TEST(list(view.is_content) == node.is_content);
  BOOST_TEST(list(view.logprobs) == node.logprobs);
  BOOST_TEST(list(view.advantages.value()) == node.advantages.value());
  BOOST_TEST(list(view.reference_logprobs.value()) == node.reference_logprobs.value());
  BOOST_TEST(list(view.rl_weights.value()) == node.rl_weights.value());
  BOOST_TEST(list(view.ce_weights.value()) == node.ce_weights.value());
  BOOST_TEST(list(view.ref_kl_weights.value()) == node.ref_kl_weights.value());
  BOOST_TEST(list(view.mm_token_type_ids.value()) == node.mm_token_type_ids.value());
  BOOST_TEST(view.routed_experts.value().rows() == 5U);
  BOOST_REQUIRE_EQUAL(view.tensors.size(), 1U);
  BOOST_TEST(view.tensors[0].name == "image_grid_thw");
  BOOST_TEST(check_elements(frame, {}).has_value());
}

BOOST_AUTO_TEST_CASE(the_hints_of_a_trace_come_back) {
  auto data = test::some_episode();
  data.finish->traces[0].hint_token_ids = {5, 6, 7};
  data.finish->traces[0].hint = "think";
  const auto frame = test::parsed(data);
  const auto *trace = frame.table().finish()->traces()->Get(0);
  BOOST_TEST(list(span_of(trace->hint_token_ids())) == (std::vector<std::int32_t>{5, 6, 7}));
  BOOST_TEST(text_of(trace->hint()) == "think");
}

BOOST_AUTO_TEST_CASE(absent_and_empty_streams_are_told_apart) {
  auto data = test::some_episode();
  data.nodes[0].advantages.emplace(); // present, and empty as the mask has no true entry
  const auto frame = test::parsed(data);
  BOOST_TEST(frame.node(0).advantages.has_value());
  BOOST_TEST(!frame.node(0).rl_weights.has_value());
  BOOST_TEST(!frame.node(1).advantages.has_value());
}

BOOST_AUTO_TEST_CASE(a_whole_episode_is_counted) {
  auto data = test::some_episode();
  data.nodes.push_back(test::some_node(2, "tool", 4));
  data.nodes.push_back(test::some_node(3, "assistant", 6));
  data.nodes[3].mask[0] = 0;
  data.nodes[3].logprobs.pop_back();
  count_whole_episode(data);
  const auto &trace = data.finish->traces[0];
  BOOST_TEST(data.finish->nodes == 4U);
  BOOST_TEST(data.finish->tokens == 18U);
  BOOST_TEST(trace.total_tokens == 18U);
  BOOST_TEST(trace.output_tokens == 10U);
  BOOST_TEST(trace.turns == 2U);
}

BOOST_AUTO_TEST_CASE(the_same_values_give_the_same_bytes) {
  const auto a = encode(test::some_episode()).value();
  const auto b = encode(test::some_episode()).value();
  BOOST_TEST(std::ranges::equal(a[0].bytes(), b[0].bytes()));
}

BOOST_AUTO_TEST_CASE(more_than_255_roles_are_refused) {
  auto data = test::some_episode();
  for (std::uint32_t i = 0; i < 256; ++i)
    data.nodes.push_back(test::some_node(2 + i, "role " + std::to_string(i), 0));
  const auto parts = encode(data);
  BOOST_REQUIRE(!parts);
  BOOST_TEST(static_cast<int>(parts.error().code) == static_cast<int>(errc::bad_argument));
}

BOOST_AUTO_TEST_CASE(a_frame_over_the_limit_is_refused_before_it_is_built) {
  auto data = test::some_episode();
  data.nodes[1].tensors.resize(limits::body_bytes / 512 + 1); // what each may take in the body
  const auto parts = encode(data);
  BOOST_REQUIRE(!parts);
  BOOST_TEST(static_cast<int>(parts.error().code) == static_cast<int>(errc::too_large));
  BOOST_TEST(parts.error().message.find("episode 'e0'") != std::string::npos);
}

} // namespace
} // namespace millrace
