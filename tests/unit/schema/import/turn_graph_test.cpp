// SPDX-License-Identifier: Apache-2.0
#include "schema/import/turn_graph.hpp"

#include <numeric>
#include <string>

#include <boost/test/unit_test.hpp>

using namespace millrace;

namespace {

using ids = std::vector<std::int32_t>;

model_turn turn(ids prompt, ids sampled, std::string role = "user") {
  std::vector<float> logprobs(sampled.size(), -1.0F);
  return {std::move(prompt), std::move(sampled), std::move(logprobs), std::move(role)};
}

/// "0<-user[1 2]" for each node: its parent, role, and tokens; sampled ones with a star.
std::string drawn(const turn_graph &graph) {
  std::string out;
  for (const auto &node : graph.nodes()) {
    out += fmt::format("{}<-{}{}[", node.parent, node.role, node.sampled ? "*" : "");
    for (auto id : node.token_ids)
      out += fmt::format("{} ", id);
    out += "] ";
  }
  return out;
}

} // namespace

BOOST_AUTO_TEST_SUITE(turns)

BOOST_AUTO_TEST_CASE(a_prompt_that_extends_the_turns_before_adds_what_is_new) {
  turn_graph graph;
  graph.add(turn({1, 2}, {3}));
  graph.add(turn({1, 2, 3, 4}, {5}, "tool"));
  BOOST_TEST(drawn(graph) == "-1<-user[1 2 ] 0<-assistant*[3 ] 1<-tool[4 ] 2<-assistant*[5 ] ");
}

BOOST_AUTO_TEST_CASE(a_prompt_that_is_the_path_so_far_adds_no_prompt_node) {
  turn_graph graph;
  graph.add(turn({1, 2}, {3}));
  graph.add(turn({1, 2, 3}, {5}));
  BOOST_TEST(drawn(graph) == "-1<-user[1 2 ] 0<-assistant*[3 ] 1<-assistant*[5 ] ");
}

BOOST_AUTO_TEST_CASE(a_prompt_rendered_with_other_tokens_branches_at_the_last_node_that_agrees) {
  turn_graph graph;
  graph.add(turn({1, 2}, {30, 31}));
  graph.add(turn({1, 2, 99, 4}, {5}));
  BOOST_TEST(drawn(graph) ==
             "-1<-user[1 2 ] 0<-assistant*[30 31 ] 0<-user[99 4 ] 2<-assistant*[5 ] ");
}

BOOST_AUTO_TEST_CASE(a_prompt_of_its_own_starts_at_a_root) {
  turn_graph graph;
  graph.add(turn({1, 2}, {3}));
  graph.add(turn({7}, {8}));
  BOOST_TEST(drawn(graph) == "-1<-user[1 2 ] 0<-assistant*[3 ] -1<-user[7 ] 2<-assistant*[8 ] ");
}

BOOST_AUTO_TEST_CASE(a_turn_may_go_on_from_an_earlier_branch) {
  turn_graph graph;
  graph.add(turn({1}, {2}));
  graph.add(turn({9}, {8}));
  graph.add(turn({1, 2, 3}, {4}));
  BOOST_TEST(drawn(graph) == "-1<-user[1 ] 0<-assistant*[2 ] -1<-user[9 ] 2<-assistant*[8 ] "
                             "1<-user[3 ] 4<-assistant*[4 ] ");
}

BOOST_AUTO_TEST_CASE(a_prompt_that_ends_within_a_node_shares_nothing_of_it) {
  turn_graph graph;
  graph.add(turn({1, 2, 3}, {4}));
  graph.add(turn({1, 2}, {5}));
  BOOST_TEST(drawn(graph) ==
             "-1<-user[1 2 3 ] 0<-assistant*[4 ] -1<-user[1 2 ] 2<-assistant*[5 ] ");
}

/// What real tokenizers do: two sampled ids come back as one, thousands of tokens into the answer.
BOOST_AUTO_TEST_CASE(ids_that_were_not_sampled_are_never_trainable) {
  ids prompt(3000);
  std::iota(prompt.begin(), prompt.end(), 0);
  ids answer(4000);
  std::iota(answer.begin(), answer.end(), 10'000);
  ids again = prompt;
  again.insert(again.end(), answer.begin(), answer.end());
  again.erase(again.begin() + 4647);
  again[4647] = 777;
  again.push_back(5);
  turn_graph graph;
  graph.add(turn(prompt, answer));
  graph.add(turn(again, {42}));
  const auto nodes = graph.nodes();
  BOOST_REQUIRE(nodes.size() == 4);
  BOOST_TEST(nodes[2].parent == 0);
  BOOST_TEST(nodes[2].token_ids.size() == again.size() - prompt.size());
  BOOST_TEST(std::accumulate(nodes[2].mask.begin(), nodes[2].mask.end(), 0) == 0);
  BOOST_TEST((nodes[3].token_ids == ids{42}));
}

BOOST_AUTO_TEST_SUITE_END()
