// SPDX-License-Identifier: Apache-2.0
#include "actors/graph/branches.hpp"

#include <random>

#include <boost/test/unit_test.hpp>

using namespace millrace;

namespace {

using path = std::vector<std::uint32_t>;

node_shape prompt(std::int32_t parent, std::uint32_t tokens = 2) {
  return {.parent = parent, .tokens = tokens};
}

node_shape turn(std::int32_t parent, std::uint32_t trainable = 2) {
  return {.parent = parent, .sampled = true, .tokens = trainable + 1, .trainable = trainable};
}

trace_graph graph_of(const std::vector<node_shape> &nodes) {
  auto graph = branches_of(nodes);
  BOOST_REQUIRE_MESSAGE(graph, graph.error().message);
  return std::move(*graph);
}

} // namespace

BOOST_AUTO_TEST_SUITE(branches)

BOOST_AUTO_TEST_CASE(a_trace_without_nodes_has_no_branches) {
  const auto graph = graph_of({});
  BOOST_TEST(graph.leaves.empty());
  BOOST_TEST(graph.trainable.empty());
}

BOOST_AUTO_TEST_CASE(leaves_come_by_index_and_paths_start_at_the_root) {
  const auto graph = graph_of({prompt(-1), turn(0), turn(0), prompt(-1), turn(1)});
  BOOST_TEST(graph.leaves == (path{2, 3, 4}), boost::test_tools::per_element());
  BOOST_TEST(graph.branches[0] == (path{0, 2}), boost::test_tools::per_element());
  BOOST_TEST(graph.branches[1] == (path{3}), boost::test_tools::per_element());
  BOOST_TEST(graph.branches[2] == (path{0, 1, 4}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_shared_turn_trains_in_its_first_branch_only) {
  const auto graph = graph_of({prompt(-1), turn(0), turn(1), turn(1)});
  BOOST_REQUIRE(graph.trainable.size() == 2U);
  BOOST_TEST(graph.trainable[0].trainable == 4U);
  BOOST_TEST(graph.trainable[1].trainable == 2U);
  BOOST_TEST(graph.trainable[1].mask_off == (std::vector<std::uint8_t>{0, 1, 0}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_branch_with_shared_turns_alone_is_no_sample) {
  const auto graph = graph_of({prompt(-1), turn(0), turn(1), prompt(1)});
  BOOST_TEST(graph.branches.size() == 2U);
  BOOST_REQUIRE(graph.trainable.size() == 1U);
  BOOST_TEST(graph.trainable[0].leaf == 2U);
}

BOOST_AUTO_TEST_CASE(a_true_mask_on_a_node_that_was_not_sampled_counts_in_every_branch) {
  auto shared = prompt(-1);
  shared.trainable = 1;
  const auto graph = graph_of({shared, prompt(0), prompt(0)});
  BOOST_REQUIRE(graph.trainable.size() == 2U);
  BOOST_TEST(graph.trainable[1].trainable == 1U);
}

BOOST_AUTO_TEST_CASE(weights_of_a_shared_node_count_in_the_first_trainable_branch_only) {
  auto shared = prompt(-1);
  shared.ce_nonzero = true;
  const auto graph = graph_of({shared, prompt(0), turn(0), turn(0)});
  BOOST_REQUIRE(graph.trainable.size() == 2U);
  BOOST_TEST(graph.trainable[0].ce_off == (std::vector<std::uint8_t>{0, 0}),
             boost::test_tools::per_element());
  BOOST_TEST(graph.trainable[1].ce_off == (std::vector<std::uint8_t>{1, 0}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_comb_of_forks_beyond_the_limit_is_an_error) {
  // A chain of n nodes with a leaf beside each: n * n / 2 path nodes.
  std::vector<node_shape> nodes;
  for (std::int32_t i = 0; i < 10'000; ++i)
    nodes.push_back(prompt(i - 1, 0));
  for (std::int32_t i = 0; i < 10'000; ++i)
    nodes.push_back(prompt(i, 0));
  const auto graph = branches_of(nodes);
  BOOST_REQUIRE(!graph);
  BOOST_TEST((graph.error().code == errc::too_large));
}

/// Over all samples of a random tree every sampled trainable token trains exactly once, and each
/// sample trains something.
BOOST_AUTO_TEST_CASE(every_sampled_token_trains_exactly_once) {
  const auto seed = std::random_device{}();
  BOOST_TEST_MESSAGE("seed " << seed);
  std::minstd_rand random(seed);
  for (int round = 0; round < 200; ++round) {
    std::vector<node_shape> nodes;
    std::uint64_t trainable = 0;
    for (std::int32_t i = 0; i < 40; ++i) {
      const auto parent = static_cast<std::int32_t>(random() % static_cast<unsigned>(i + 1)) - 1;
      nodes.push_back(random() % 2 == 0 ? prompt(parent)
                                        : turn(parent, static_cast<std::uint32_t>(random() % 3)));
      trainable += nodes.back().trainable;
    }
    std::uint64_t trained = 0;
    for (const auto &branch : graph_of(nodes).trainable) {
      BOOST_TEST_REQUIRE(branch.trainable > 0U, "seed " << seed);
      trained += branch.trainable;
    }
    BOOST_TEST_REQUIRE(trained == trainable, "seed " << seed << ", round " << round);
  }
}

BOOST_AUTO_TEST_SUITE_END()
