// SPDX-License-Identifier: Apache-2.0
#include "schema/episode.hpp"

#include <cmath>
#include <functional>
#include <limits>

#include "schema/limits.hpp"
#include "tests/support/episodes.hpp"

#include <boost/test/unit_test.hpp>

namespace millrace {
namespace {

/// What the door says to an episode that was changed; empty if it passes.
std::string verdict(const std::function<void(frame_data &)> &change, element_limits demands = {}) {
  auto data = test::some_episode();
  change(data);
  auto parts = encode(data);
  BOOST_REQUIRE(parts);
  const auto frame = episode_frame::parse(std::move(*parts));
  if (!frame)
    return frame.error().message;
  const auto checked = check_elements(*frame, demands);
  return checked ? "" : checked.error().message;
}

bool says(const std::string &message, std::initializer_list<std::string> words) {
  for (const auto &word : words)
    if (message.find(word) == std::string::npos)
      return false;
  return !message.empty();
}

BOOST_AUTO_TEST_CASE(a_whole_episode_passes_the_door) {
  BOOST_TEST(verdict([](frame_data &) {}) == "");
}

BOOST_AUTO_TEST_CASE(the_spans_of_a_node_lie_in_the_body) {
  const auto frame = test::parsed(test::some_episode());
  const auto bytes = frame.parts().front().bytes();
  const auto node = frame.node(1);
  const auto *ids = reinterpret_cast<const std::byte *>(node.token_ids.data());
  BOOST_TEST(ids > bytes.data());
  BOOST_TEST(ids < bytes.data() + bytes.size());
  BOOST_TEST(node.role == "assistant");
  BOOST_TEST(node.sampled);
  BOOST_TEST(node.parent == 0);
}

BOOST_AUTO_TEST_CASE(a_bad_node_is_named_by_episode_trace_node_and_field) {
  BOOST_TEST(says(verdict([](frame_data &data) { data.nodes[1].logprobs.pop_back(); }),
                  {"episode 'e0'", "trace 0", "node 1", "logprobs", "4", "5"}));
}

BOOST_AUTO_TEST_CASE(ids_are_checked_against_the_vocabulary_in_prompts_and_answers) {
  for (const std::size_t node : {0U, 1U}) {
    BOOST_TEST(verdict([&](frame_data &data) { data.nodes[node].token_ids[2] = 199; }, {200}) ==
               "");
    BOOST_TEST(says(verdict([&](frame_data &data) { data.nodes[node].token_ids[2] = 200; }, {200}),
                    {"token_ids[2]", "200", "node " + std::to_string(node)}));
  }
}

BOOST_AUTO_TEST_CASE(a_parent_that_does_not_come_before_its_node_is_refused) {
  for (const std::int32_t parent : {1, 2, std::numeric_limits<std::int32_t>::max(), -2,
                                    std::numeric_limits<std::int32_t>::min()})
    BOOST_TEST(says(verdict([&](frame_data &data) { data.nodes[1].parent = parent; }),
                    {"node 1", "parent " + std::to_string(parent)}));
}

BOOST_AUTO_TEST_CASE(rewards_that_are_not_finite_are_refused) {
  for (const double bad : {std::nan(""), HUGE_VAL, -HUGE_VAL})
    BOOST_TEST(says(verdict([&](frame_data &data) { data.finish->traces[0].reward = bad; }),
                    {"episode 'e0'", "trace 0: reward is"}));
}

BOOST_AUTO_TEST_CASE(ids_of_a_hint_are_checked_against_the_vocabulary) {
  const auto with = [](std::int32_t id) {
    return [id](frame_data &data) { data.finish->traces[0].hint_token_ids = {1, id}; };
  };
  BOOST_TEST(verdict(with(199), {200}) == "");
  BOOST_TEST(says(verdict(with(200), {200}), {"trace 0", "hint_token_ids[1]", "200"}));
  BOOST_TEST(says(verdict(with(-1)), {"trace 0", "hint_token_ids[1]", "-1"}));
}

BOOST_AUTO_TEST_CASE(a_hint_longer_than_its_limit_is_refused) {
  const auto of = [](std::size_t bytes) {
    return [bytes](frame_data &data) { data.finish->traces[0].hint = std::string(bytes, 'x'); };
  };
  BOOST_TEST(verdict(of(limits::hint_bytes)) == "");
  BOOST_TEST(says(verdict(of(limits::hint_bytes + 1)), {"trace 0", "hint has"}));
}

BOOST_AUTO_TEST_CASE(environments_without_a_name_or_named_all_are_refused) {
  BOOST_TEST(says(verdict([](frame_data &data) { data.key.env = ""; }), {"env"}));
  BOOST_TEST(says(verdict([](frame_data &data) { data.key.env = "all"; }), {"env", "all"}));
}

BOOST_AUTO_TEST_CASE(an_episode_without_an_id_is_refused) {
  BOOST_TEST(says(verdict([](frame_data &data) { data.episode = ""; }), {"no id"}));
}

BOOST_AUTO_TEST_CASE(an_end_that_counts_other_frames_than_its_place_is_refused) {
  BOOST_TEST(says(verdict([](frame_data &data) { data.finish->frames = 2; }), {"frame 0", "2"}));
}

BOOST_AUTO_TEST_CASE(an_unknown_status_is_refused) {
  BOOST_TEST(says(
      verdict([](frame_data &data) { data.finish->status = static_cast<wire::EpisodeStatus>(9); }),
      {"unknown status 9"}));
}

BOOST_AUTO_TEST_CASE(more_tokens_than_an_episode_may_have_are_refused) {
  BOOST_TEST(
      says(verdict([](frame_data &data) { data.finish->tokens = limits::tokens_per_episode + 1; }),
           {"tokens"}));
}

BOOST_AUTO_TEST_CASE(experts_whose_bytes_changed_are_refused) {
  auto data = test::some_episode();
  data.nodes[1].routed_experts = test::some_experts(5);
  auto parts = encode(data).value();
  BOOST_REQUIRE_EQUAL(parts.size(), 2U);
  parts[1] = test::bytes_of(std::vector<std::uint8_t>(20, 9));
  const auto frame = episode_frame::parse(parts).value();
  const auto checked = check_elements(frame, {});
  BOOST_REQUIRE(!checked);
  BOOST_TEST(says(checked.error().message, {"node 1", "checksum"}));
}

BOOST_AUTO_TEST_CASE(experts_without_one_row_a_token_are_refused) {
  BOOST_TEST(
      says(verdict([](frame_data &data) { data.nodes[1].routed_experts = test::some_experts(4); }),
           {"node 1", "routed_experts", "4", "5"}));
}

BOOST_AUTO_TEST_CASE(a_frame_whose_array_part_is_missing_does_not_parse) {
  auto data = test::some_episode();
  data.nodes[1].routed_experts = test::some_experts(5);
  auto parts = encode(data).value();
  parts.pop_back();
  BOOST_TEST(!episode_frame::parse(parts));
}

BOOST_AUTO_TEST_CASE(a_message_without_parts_or_with_too_many_does_not_parse) {
  BOOST_TEST(!episode_frame::parse({}));
  message many(limits::parts + 1, encode(test::some_episode()).value().front());
  BOOST_TEST(!episode_frame::parse(many));
}

} // namespace
} // namespace millrace
