// SPDX-License-Identifier: Apache-2.0
#include "actors/graph/credit.hpp"

#include <boost/test/unit_test.hpp>

#include "tests/support/groups.hpp"

using namespace millrace;
using namespace millrace::test;
using floats = std::vector<float>;

namespace {

/// A prompt, a turn of 2 trainable tokens, and two turns of 1 after it.
const sealed_episode &forked() {
  static const auto episode = sealed_one(
      episode_of("e", 0, {prompt(-1, 2), turn(0, {0, 1, 1}), turn(1, {0, 1}), turn(1, {1})}));
  return episode;
}

trace_graph graph_of(const std::vector<node_view> &nodes) {
  std::vector<node_shape> shapes;
  for (const auto &node : nodes)
    shapes.push_back(shape_of(node));
  return *branches_of(shapes);
}

} // namespace

BOOST_AUTO_TEST_SUITE(credit)

BOOST_AUTO_TEST_CASE(one_number_goes_to_every_trainable_token) {
  const auto values = assign_advantages(forked().nodes(0), 0.5F);
  BOOST_REQUIRE(values);
  BOOST_TEST(!(*values)[0].has_value());
  BOOST_TEST(*(*values)[1] == (floats{0.5F, 0.5F}), boost::test_tools::per_element());
  BOOST_TEST(*(*values)[3] == (floats{0.5F}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_list_is_dealt_in_node_order) {
  const auto values = assign_advantages(forked().nodes(0), floats{1, 2, 3, 4});
  BOOST_REQUIRE(values);
  BOOST_TEST(*(*values)[1] == (floats{1, 2}), boost::test_tools::per_element());
  BOOST_TEST(*(*values)[2] == (floats{3}), boost::test_tools::per_element());
  BOOST_TEST(*(*values)[3] == (floats{4}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_list_of_another_length_is_refused_with_both_counts) {
  const auto values = assign_advantages(forked().nodes(0), floats{1, 2, 3});
  BOOST_REQUIRE(!values);
  BOOST_TEST(values.error().message == "3 advantages for 4 trainable tokens");
}

BOOST_AUTO_TEST_CASE(a_mask_of_another_length_than_its_tokens_is_refused) {
  auto nodes = forked().nodes(0);
  nodes[1].mask = nodes[1].mask.first(2);
  BOOST_TEST(!assign_advantages(nodes, 1.0F));
}

BOOST_AUTO_TEST_CASE(a_shared_node_keeps_the_reference_logprobs_of_its_first_branch) {
  const auto nodes = forked().nodes(0);
  const std::vector<floats> lists{{0, 0, 0, -1, -2, 0, -3}, {0, 0, 0, -7, -8, -9}};
  const auto values = assign_reference_logprobs(nodes, graph_of(nodes), lists);
  BOOST_REQUIRE_MESSAGE(values, values.error().message);
  BOOST_TEST(!(*values)[0].has_value());
  BOOST_TEST(*(*values)[1] == (floats{-1, -2}), boost::test_tools::per_element());
  BOOST_TEST(*(*values)[2] == (floats{-3}), boost::test_tools::per_element());
  BOOST_TEST(*(*values)[3] == (floats{-9}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(another_number_or_length_of_lists_is_refused) {
  const auto nodes = forked().nodes(0);
  const auto graph = graph_of(nodes);
  BOOST_TEST(!assign_reference_logprobs(nodes, graph, std::vector<floats>{floats(7)}));
  BOOST_TEST(!assign_reference_logprobs(nodes, graph, std::vector<floats>{floats(7), floats(5)}));
}

BOOST_AUTO_TEST_CASE(the_scalar_is_the_mean_of_nonzero_values) {
  BOOST_TEST(*scalar_advantage({floats{0, 1}, std::nullopt, floats{2}}) == 1.5);
  BOOST_TEST(*scalar_advantage({floats{0, 0}}) == 0.0);
  BOOST_TEST(!scalar_advantage({std::nullopt, floats{}}));
}

BOOST_AUTO_TEST_SUITE_END()
