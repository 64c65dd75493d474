// SPDX-License-Identifier: Apache-2.0
#include "actors/assembler/group_header.hpp"

#include <limits>

#include <boost/test/unit_test.hpp>

#include "tests/support/groups.hpp"

using namespace millrace;
using namespace millrace::test;

namespace {

/// The only branch of an episode's first trace.
const wire::BranchHeader &branch_of(const body<wire::GroupHeader> &header,
                                    flatbuffers::uoffset_t episode = 0,
                                    flatbuffers::uoffset_t branch = 0) {
  return *header->episodes()->Get(episode)->traces()->Get(0)->branches()->Get(branch);
}

const wire::EpisodeHeader &episode_at(const body<wire::GroupHeader> &header,
                                      flatbuffers::uoffset_t episode) {
  return *header->episodes()->Get(episode);
}

frame_data plain(const std::string &id = "e", double reward = 1) {
  return episode_of(id, reward, {prompt(-1, 3), turn(0, {0, 1, 1})});
}

std::string refused(const frame_data &episode) {
  const auto header = header_of({episode, plain("sibling")});
  BOOST_TEST((episode_at(header, 1).status() == wire::EpisodeStatus::Ok));
  BOOST_TEST(episode_at(header, 1).traces()->size() == 1U);
  BOOST_TEST((episode_at(header, 0).status() == wire::EpisodeStatus::Rejected));
  BOOST_TEST(episode_at(header, 0).traces()->size() == 0U);
  return std::string(text_of(episode_at(header, 0).reason()));
}

std::vector<std::uint64_t> shape_of_array(const wire::ArrayShape *array) {
  const auto shape = span_of(array->shape());
  return {shape.begin(), shape.end()};
}

using shape = std::vector<std::uint64_t>;

} // namespace

BOOST_AUTO_TEST_SUITE(group_header)

BOOST_AUTO_TEST_CASE(it_names_its_group_whole) {
  // Two environments number tasks alike: run, environment, task and group all stand in the key.
  const auto header = header_of({plain()});
  BOOST_TEST(text_of(header->key()->run()) == "run");
  BOOST_TEST(text_of(header->key()->env()) == "env");
  BOOST_TEST(text_of(header->key()->task()) == "task");
  BOOST_TEST(text_of(header->key()->group()) == "group");
  BOOST_TEST(text_of(header->source()) == "source");
  BOOST_TEST(header->ordinal() == 7U);
  BOOST_TEST(header->size() == 1U);
}

BOOST_AUTO_TEST_CASE(a_trace_carries_counts_and_no_tokens) {
  const auto header = header_of({plain("e", 0.25)});
  const auto &episode = episode_at(header, 0);
  BOOST_TEST(episode.tokens() == 6U);
  BOOST_TEST(episode.bytes() == sealed_one(plain()).bytes());
  const auto &trace = *episode.traces()->Get(0);
  BOOST_TEST(trace.reward() == 0.25);
  BOOST_TEST(trace.output_tokens() == 2U);
  BOOST_TEST(trace.total_tokens() == 6U);
  BOOST_TEST(trace.turns() == 1U);
  BOOST_TEST(trace.trainable_tokens() == 2U);
  BOOST_TEST(trace.node_parents()->Get(0) == -1);
  BOOST_TEST(trace.node_parents()->Get(1) == 0);
  BOOST_TEST((trace.node_flags()->Get(1) & static_cast<std::uint8_t>(wire::NodeFlag::Sampled)) !=
             0);
  BOOST_TEST(trace.node_tokens()->Get(0) == 3U);
  BOOST_TEST(trace.node_trainable()->Get(1) == 2U);
  const auto &branch = branch_of(header);
  BOOST_TEST(branch.tokens() == 6U);
  BOOST_TEST(branch.trainable() == 2U);
  BOOST_TEST(branch.trainable_in_seq_len() == 2U);
}

BOOST_AUTO_TEST_CASE(roles_stand_once_for_the_group) {
  auto first = plain("a");
  first.nodes[0].role = "system";
  const auto header = header_of({first, plain("b")});
  BOOST_REQUIRE(header->roles()->size() == 3U);
  const auto role_of = [&](flatbuffers::uoffset_t episode, flatbuffers::uoffset_t node) {
    const auto index = episode_at(header, episode).traces()->Get(0)->node_roles()->Get(node);
    return text_of(header->roles()->Get(index));
  };
  BOOST_TEST(role_of(0, 0) == "system");
  BOOST_TEST(role_of(1, 0) == "user");
  BOOST_TEST(role_of(0, 1) == "assistant");
  BOOST_TEST(role_of(1, 1) == "assistant");
}

BOOST_AUTO_TEST_CASE(an_episode_whose_roles_the_group_cannot_hold_is_rejected_alone) {
  std::vector<frame_data> episodes;
  for (int e = 0; e < 3; ++e) {
    std::vector<node_data> nodes;
    for (int i = 0; i < 200; ++i) {
      nodes.push_back(prompt(i - 1, 1));
      nodes.back().role = std::to_string(e / 2 * 1000 + i);
    }
    episodes.push_back(episode_of(std::to_string(e), 0, std::move(nodes)));
  }
  const auto header = header_of(episodes);
  BOOST_TEST((episode_at(header, 1).status() == wire::EpisodeStatus::Ok));
  BOOST_TEST((episode_at(header, 2).status() == wire::EpisodeStatus::Rejected));
  BOOST_TEST(header->roles()->size() == 200U);
}

BOOST_AUTO_TEST_CASE(a_cut_counts_the_trainable_tokens_that_it_keeps) {
  // Prompt of 3, then false, true, true: the cut at 5 keeps one, at 4 and 3 none.
  for (const auto &[seq_len, kept] :
       {std::pair{6U, 2U}, std::pair{5U, 1U}, std::pair{4U, 0U}, std::pair{3U, 0U}}) {
    const auto header = header_of({plain()}, seq_len);
    BOOST_TEST(branch_of(header).trainable_in_seq_len() == kept);
    BOOST_TEST(branch_of(header).trainable() == 2U);
  }
}

BOOST_AUTO_TEST_CASE(a_prompt_around_seq_len_leaves_what_is_within) {
  constexpr std::uint64_t seq_len = 64;
  for (std::uint64_t length : {seq_len - 1, seq_len, seq_len + 1}) {
    const auto header =
        header_of({episode_of("e", 1, {prompt(-1, length), turn(0, {1, 1})})}, seq_len);
    BOOST_TEST(branch_of(header).trainable_in_seq_len() == (length < seq_len ? 1U : 0U));
  }
}

BOOST_AUTO_TEST_CASE(an_empty_answer_trains_nothing_and_writes_nowhere) {
  auto empty = episode_of("empty", 10, {prompt(-1, 3), turn(0, {})});
  std::vector<frame_data> episodes{empty};
  for (int i = 0; i < 7; ++i)
    episodes.push_back(plain(std::to_string(i), 0));
  const auto header = header_of(episodes);
  const auto &trace = *episode_at(header, 0).traces()->Get(0);
  BOOST_TEST(trace.trainable_tokens() == 0U);
  BOOST_TEST(trace.branches()->size() == 0U);
  BOOST_TEST((episode_at(header, 0).status() == wire::EpisodeStatus::Ok));
}

BOOST_AUTO_TEST_CASE(only_what_can_train_lists_branches) {
  auto failed = plain("failed");
  failed.finish->traces[0].ok = false;
  auto judge = plain("judge");
  judge.finish->traces[0].agent_trainable = false;
  auto evaluation = plain("eval");
  evaluation.eval = true;
  auto errored = plain("errored");
  errored.finish->status = wire::EpisodeStatus::Errored;
  errored.finish->reason = "sandbox died";
  const auto header = header_of({failed, judge, evaluation, errored, plain()});
  for (flatbuffers::uoffset_t e = 0; e < 4; ++e)
    BOOST_TEST(episode_at(header, e).traces()->Get(0)->branches()->size() == 0U);
  BOOST_TEST(episode_at(header, 4).traces()->Get(0)->branches()->size() == 1U);
  BOOST_TEST(text_of(episode_at(header, 3).reason()) == "sandbox died");
}

BOOST_AUTO_TEST_CASE(a_member_without_data_keeps_its_place) {
  auto group = group_of({plain("a")});
  group.episodes.insert(group.episodes.begin(), {.data = std::nullopt,
                                                 .id = "refused",
                                                 .attempt = 2,
                                                 .status = wire::EpisodeStatus::Rejected,
                                                 .reason = "bad mask"});
  const auto header = header_of(group);
  BOOST_TEST(text_of(episode_at(header, 0).id()) == "refused");
  BOOST_TEST(episode_at(header, 0).attempt() == 2U);
  BOOST_TEST(text_of(episode_at(header, 0).reason()) == "bad mask");
  BOOST_TEST(text_of(episode_at(header, 1).id()) == "a");
}

BOOST_AUTO_TEST_CASE(a_verdict_of_the_group_stands_over_what_the_episode_says) {
  auto group = group_of({plain("a")});
  group.episodes[0].status = wire::EpisodeStatus::Cancelled;
  group.episodes[0].reason = "given up";
  const auto header = header_of(group);
  BOOST_TEST((episode_at(header, 0).status() == wire::EpisodeStatus::Cancelled));
  BOOST_TEST(episode_at(header, 0).traces()->Get(0)->branches()->size() == 0U);
}

BOOST_AUTO_TEST_CASE(a_reward_that_float32_cannot_hold_rejects_its_episode) {
  BOOST_TEST(refused(plain("e", 1e300)) ==
             "episode 'e', trace 0: reward 1e+300 does not fit float32");
  const double largest = std::numeric_limits<float>::max();
  BOOST_TEST(
      (episode_at(header_of({plain("e", -largest)}), 0).status() == wire::EpisodeStatus::Ok));
}

BOOST_AUTO_TEST_CASE(experts_are_joined_over_a_branch) {
  auto episode = plain();
  episode.nodes[0].routed_experts = array_of("", dtype::int16, {3, 2, 4});
  episode.nodes[1].routed_experts = array_of("", dtype::int16, {3, 2, 4});
  const auto header = header_of({episode});
  const auto *experts = branch_of(header).routed_experts();
  BOOST_REQUIRE(experts != nullptr);
  BOOST_TEST((experts->dtype() == wire::DType::Int16));
  BOOST_TEST(shape_of_array(experts) == (shape{6, 2, 4}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(experts_are_absent_if_a_node_with_tokens_has_none) {
  auto episode = episode_of("e", 1, {prompt(-1, 0), prompt(0, 2), turn(1, {1}), turn(1, {1})});
  episode.nodes[1].routed_experts = array_of("", dtype::uint8, {2, 1, 1});
  episode.nodes[2].routed_experts = array_of("", dtype::uint8, {1, 1, 1});
  const auto header = header_of({episode});
  BOOST_TEST(branch_of(header, 0, 0).routed_experts() != nullptr); // the empty root does not matter
  BOOST_TEST(branch_of(header, 0, 1).routed_experts() == nullptr);
}

BOOST_AUTO_TEST_CASE(experts_that_do_not_fit_their_branch_reject_their_episode) {
  auto episode = plain();
  episode.nodes[0].routed_experts = array_of("", dtype::uint8, {3, 2, 4});
  episode.nodes[1].routed_experts = array_of("", dtype::int16, {3, 2, 4});
  BOOST_TEST(refused(episode) ==
             "episode 'e', trace 0: node 1: routed_experts has int16 rows of 2 x 4, on a branch "
             "where it has uint8 rows of 2 x 4");
  episode.nodes[1].routed_experts = array_of("", dtype::uint8, {3, 2, 3});
  BOOST_TEST(refused(episode).find("uint8 rows of 2 x 3") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(experts_of_two_branches_may_differ) {
  auto episode = episode_of("e", 1, {prompt(-1, 0), turn(0, {1}), turn(0, {1})});
  episode.nodes[1].routed_experts = array_of("", dtype::uint8, {1, 2, 4});
  episode.nodes[2].routed_experts = array_of("", dtype::uint8, {1, 2, 8});
  const auto header = header_of({episode});
  BOOST_TEST((episode_at(header, 0).status() == wire::EpisodeStatus::Ok));
}

BOOST_AUTO_TEST_CASE(image_tensors_are_joined_by_name_over_a_branch) {
  auto episode = episode_of("e", 1, {prompt(-1, 4), prompt(0, 3), turn(1, {1, 1})});
  for (std::size_t i : {0U, 1U}) {
    auto &node = episode.nodes[i];
    node.mm_token_type_ids.emplace(node.token_ids.size(), std::uint8_t{0});
    node.mm_token_type_ids->back() = 1;
    node.tensors = {array_of("pixel_values", dtype::float32, {4 * (i + 1), 6}),
                    grid_of(i == 0 ? std::vector<std::int64_t>{1, 2, 2}
                                   : std::vector<std::int64_t>{1, 2, 2, 1, 1, 4})};
  }
  episode.nodes[1].mm_token_type_ids->front() = 1; // beside the run of node 0
  const auto header = header_of({episode});
  const auto &branch = branch_of(header);
  BOOST_TEST(branch.type_ids());
  BOOST_REQUIRE(branch.tensors()->size() == 2U);
  BOOST_TEST(text_of(branch.tensors()->Get(0)->name()) == "image_grid_thw");
  BOOST_TEST(shape_of_array(branch.tensors()->Get(1)) == (shape{12, 6}),
             boost::test_tools::per_element());
  BOOST_TEST(span_of(branch.image_runs()) == (std::vector<std::uint32_t>{3, 2, 6, 1}),
             boost::test_tools::per_element());
  BOOST_TEST(span_of(branch.image_grid_thw()) == (shape{1, 2, 2, 1, 2, 2, 1, 1, 4}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(an_image_that_the_cut_would_split_takes_the_trainable_tokens_after_it_away) {
  // Text, a turn, half of an image, a turn, the other half, a turn: the cut at 4 falls back to 2
  // tokens, the one at 5 keeps the image.
  auto episode = episode_of(
      "e", 1,
      {prompt(-1, 1), turn(0, {1}), prompt(1, 1), turn(2, {1}), prompt(3, 1), turn(4, {1})});
  for (std::size_t i : {2U, 4U})
    episode.nodes[i].mm_token_type_ids.emplace(1, std::uint8_t{1});
  episode.nodes[2].tensors = {array_of("pixel_values", dtype::float32, {4, 6}), grid_of({1, 2, 2})};
  BOOST_TEST(branch_of(header_of({episode}, 4)).trainable_in_seq_len() == 1U);
  BOOST_TEST(branch_of(header_of({episode}, 5)).trainable_in_seq_len() == 2U);
  BOOST_TEST(branch_of(header_of({episode}, 6)).trainable_in_seq_len() == 3U);
}

BOOST_AUTO_TEST_CASE(image_tensors_that_do_not_join_reject_their_episode) {
  const auto with = [](std::vector<array_data> first, std::vector<array_data> second) {
    auto episode = plain();
    for (auto &node : episode.nodes)
      node.mm_token_type_ids.emplace(node.token_ids.size(), std::uint8_t{1});
    episode.nodes[0].tensors = std::move(first);
    episode.nodes[1].tensors = std::move(second);
    return refused(episode);
  };
  const auto says = [](const std::string &reason, std::string_view part) {
    return reason.find(part) != std::string::npos;
  };
  const auto pixels = array_of("pixel_values", dtype::float32, {2, 6});
  BOOST_TEST(says(with({pixels}, {array_of("pixel_values", dtype::float32, {2, 7})}),
                  "node 1: 'pixel_values' has float32 rows of 7"));
  BOOST_TEST(says(with({pixels}, {array_of("pixel_values", dtype::bfloat16, {2, 6})}), "bfloat16"));
  BOOST_TEST(says(with({pixels}, {array_of("pixel_values", dtype::float32, {2, 6, 1})}), "6 x 1"));
  BOOST_TEST(says(with({pixels, pixels}, {}), "two tensors are named"));
  BOOST_TEST(says(with({array_of("image_grid_thw", dtype::int16, {1, 3})}, {}), "int64"));
  BOOST_TEST(says(with({array_of("image_grid_thw", dtype::int64, {1, 2})}, {}), "[images, 3]"));
  BOOST_TEST(says(with({grid_of({1, -2, 2})}, {}), "holds -2"));
  BOOST_TEST(says(with({grid_of({1 << 20, 1 << 20, 1 << 20})}, {}), "patches"));
}

BOOST_AUTO_TEST_CASE(image_tensors_without_type_ids_reject_their_episode) {
  auto episode = plain();
  episode.nodes[0].tensors = {array_of("pixel_values", dtype::float32, {2, 6})};
  BOOST_TEST(refused(episode).find("mm_token_type_ids") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(branches_that_list_images_without_end_reject_their_episode) {
  // 2,000 images of one token in the shared prompt, 1,100 forks: 4.4 million numbers.
  std::vector<node_data> nodes{prompt(-1, 4000)};
  nodes[0].mm_token_type_ids.emplace(4000, std::uint8_t{0});
  for (std::size_t i = 0; i < 4000; i += 2)
    (*nodes[0].mm_token_type_ids)[i] = 1;
  for (int i = 0; i < 1100; ++i)
    nodes.push_back(turn(0, {1}));
  BOOST_TEST(refused(episode_of("e", 1, std::move(nodes))).find("image positions") !=
             std::string::npos);
}

BOOST_AUTO_TEST_CASE(advantages_that_came_with_nodes_are_counted_with_their_range) {
  auto episode = plain();
  episode.nodes[1].advantages = {0.0F, -0.5F};
  const auto header = header_of({episode});
  const auto &trace = *episode_at(header, 0).traces()->Get(0);
  BOOST_TEST(trace.advantage_count() == 2U);
  BOOST_TEST(trace.advantage_min() == -0.5F);
  BOOST_TEST(trace.advantage_max() == 0.0F);
  BOOST_TEST(branch_of(header).advantages());
  BOOST_TEST(branch_of(header).zero_advantage_on_mask());
  BOOST_TEST(branch_of(header).nonzero_advantage_on_mask());
}

BOOST_AUTO_TEST_CASE(weights_are_told_apart_by_where_they_stand) {
  auto episode = episode_of("e", 1, {prompt(-1, 2), turn(0, {0, 1})});
  episode.nodes[1].rl_weights = {1.0F, 0.0F};
  episode.nodes[0].ce_weights = {0.0F, 2.0F};
  const auto header = header_of({episode});
  const auto &branch = branch_of(header);
  BOOST_TEST(branch.rl_nonzero());
  BOOST_TEST(!branch.rl_nonzero_on_mask());
  BOOST_TEST(branch.ce_nonzero());
  BOOST_TEST(!branch.ref_kl_nonzero());
}

BOOST_AUTO_TEST_CASE(a_header_in_parts_is_the_header_at_once) {
  const auto group = group_of({plain("a"), plain("b", 0)});
  std::vector<episode_header> parts;
  for (const auto &member : group.episodes)
    parts.push_back(make_episode_header(*member.data, no_cut));
  const auto joined = make_group_header(
      {.key = group.key, .source = group.source, .ordinal = group.ordinal, .size = group.size},
      parts);
  BOOST_REQUIRE(joined);
  const auto whole = header_of(group);
  BOOST_TEST(std::ranges::equal(joined->bytes(), whole.bytes().bytes()));
}

BOOST_AUTO_TEST_SUITE_END()
