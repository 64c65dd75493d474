// SPDX-License-Identifier: Apache-2.0
#include "actors/scorer/gate.hpp"

#include <boost/test/unit_test.hpp>

#include "tests/support/groups.hpp"

using namespace millrace;
using namespace millrace::test;

namespace {

/// Two traces; the second one's nodes come with advantages -0.25 and 0.5.
const body<wire::GroupHeader> &two_traces() {
  static const auto header = [] {
    auto second = episode_of("b", 0, {turn(-1, {1, 1})});
    second.nodes[0].advantages = {-0.25F, 0.5F};
    return header_of({episode_of("a", 0, {turn(-1, {1})}), second});
  }();
  return header;
}

scored_group scores(std::optional<float> first, std::optional<float> second) {
  return {.traces = {{.episode = 0, .trace = 0, .advantage = first},
                     {.episode = 1, .trace = 0, .advantage = second}},
          .rl_weight = std::nullopt};
}

bool admits(const scored_group &group, double low, double high) {
  return gate_admits(*two_traces(), group, {.reject_min = low, .reject_max = high});
}

} // namespace

BOOST_AUTO_TEST_SUITE(gates)

BOOST_AUTO_TEST_CASE(no_gate_admits_zeros) {
  BOOST_TEST(gate_admits(*two_traces(), scores(0.0F, 0.0F), {}));
}

BOOST_AUTO_TEST_CASE(both_bounds_are_included) {
  BOOST_TEST(!admits(scores(-0.5F, 0.5F), -0.5, 0.5));
  BOOST_TEST(admits(scores(-0.5F, 0.5F), -0.5, 0.49));
  BOOST_TEST(admits(scores(-0.5F, 0.5F), -0.49, 0.5));
}

BOOST_AUTO_TEST_CASE(advantages_of_nodes_count_each) {
  BOOST_TEST(!admits(scores(0.0F, std::nullopt), -0.25, 0.5));
  BOOST_TEST(admits(scores(0.0F, std::nullopt), -0.2, 0.5));
  BOOST_TEST(admits(scores(0.0F, std::nullopt), -0.25, 0.4));
}

BOOST_AUTO_TEST_CASE(a_score_stands_over_the_nodes) {
  BOOST_TEST(!admits(scores(0.0F, 0.0F), 0, 0));
}

BOOST_AUTO_TEST_CASE(a_trace_without_advantages_is_left_out) {
  BOOST_TEST(!admits(scores(std::nullopt, 0.0F), 0, 0));
}

BOOST_AUTO_TEST_CASE(a_group_without_any_advantage_is_admitted) {
  scored_group group = scores(std::nullopt, std::nullopt);
  group.traces.pop_back();
  BOOST_TEST(admits(group, -1, 1));
}

BOOST_AUTO_TEST_SUITE_END()
