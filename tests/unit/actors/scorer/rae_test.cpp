// SPDX-License-Identifier: Apache-2.0
#include "actors/scorer/rae.hpp"

#include <boost/test/unit_test.hpp>

#include "schema/body.hpp"

using namespace millrace;

namespace {

trace_score_input trace(std::string_view agent, double reward) {
  return {.agent = agent, .reward = reward, .trainable_tokens = 1};
}

std::vector<std::uint8_t> state_with(const std::vector<std::pair<std::string, double>> &entries) {
  flatbuffers::FlatBufferBuilder builder;
  std::vector<flatbuffers::Offset<wire::AgentBaseline>> agents;
  for (const auto &[agent, value] : entries)
    agents.push_back(wire::CreateAgentBaseline(builder, builder.CreateString(agent), value));
  const auto bytes = finish_body<wire::AgentBaselines>(
      builder, wire::CreateAgentBaselines(builder, builder.CreateVector(agents)));
  const auto *data = reinterpret_cast<const std::uint8_t *>(bytes.data());
  return {data, data + bytes.size()};
}

} // namespace

BOOST_AUTO_TEST_SUITE(raes)

BOOST_AUTO_TEST_CASE(each_trace_is_scored_before_it_moves_the_baseline_of_its_agent) {
  agent_baselines state;
  const std::vector traces{trace("a", 1), trace("b", 4), trace("a", 1)};
  const auto score = rae(traces, 0.5, state);
  BOOST_REQUIRE(score);
  BOOST_TEST(score->advantages[0].value() == 1.0F);
  BOOST_TEST(score->advantages[1].value() == 4.0F);
  BOOST_TEST(score->advantages[2].value() == 0.5F);
  BOOST_TEST(state["a"] == 0.75);
  BOOST_TEST(state["b"] == 2.0);
}

BOOST_AUTO_TEST_CASE(a_decay_of_zero_keeps_the_last_reward) {
  agent_baselines state{{"a", 100}};
  const std::vector traces{trace("a", 1), trace("a", 3)};
  BOOST_REQUIRE(rae(traces, 0, state));
  BOOST_TEST(state["a"] == 3.0);
}

BOOST_AUTO_TEST_CASE(a_state_is_read_back_as_it_was_written) {
  const agent_baselines state{{"a", 0.1}, {"b", -3}, {"", 0}};
  BOOST_TEST((decode_baselines(encode_baselines(state)).value() == state));
  BOOST_TEST(decode_baselines({}).value().empty());
}

BOOST_AUTO_TEST_CASE(equal_states_are_equal_bytes_however_they_came_about) {
  agent_baselines one;
  agent_baselines two;
  BOOST_REQUIRE(rae(std::vector{trace("a", 1), trace("b", 2)}, 0.5, one));
  BOOST_REQUIRE(rae(std::vector{trace("b", 2), trace("a", 1)}, 0.5, two));
  BOOST_TEST(encode_baselines(one) == encode_baselines(two));
  two["a"] += 1e-15;
  BOOST_TEST(encode_baselines(one) != encode_baselines(two));
}

BOOST_AUTO_TEST_CASE(a_cut_state_is_refused_and_one_with_a_flipped_bit_is_never_the_same) {
  const agent_baselines state{{"alice", 0.25}, {"bob", -1}};
  const auto good = encode_baselines(state);
  for (std::size_t i = 1; i < good.size(); ++i)
    BOOST_TEST(!decode_baselines(std::span(good).first(i)));
  for (std::size_t i = 0; i < good.size() * 8; ++i) {
    auto bad = good;
    bad[i / 8] ^= static_cast<std::uint8_t>(1U << (i % 8));
    const auto found = decode_baselines(bad);
    BOOST_TEST((!found || *found != state)); // a flip in a number or a name is another state
  }
}

BOOST_AUTO_TEST_CASE(names_out_of_order_and_values_that_are_no_numbers_are_refused) {
  const auto swapped = decode_baselines(state_with({{"b", 1}, {"a", 1}}));
  BOOST_TEST(swapped.error().message == "agent 'a' does not come after 'b'");
  BOOST_TEST(!decode_baselines(state_with({{"a", 1}, {"a", 1}})));
  const auto nan = decode_baselines(state_with({{"a", std::numeric_limits<double>::quiet_NaN()}}));
  BOOST_TEST(nan.error().message.find("agent 'a'") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
