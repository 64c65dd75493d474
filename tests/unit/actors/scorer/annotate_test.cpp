// SPDX-License-Identifier: Apache-2.0
#include "actors/scorer/annotate.hpp"

#include <boost/test/unit_test.hpp>

#include "tests/support/groups.hpp"

using namespace millrace;
using namespace millrace::test;

namespace {

frame_data plain(const std::string &id, double reward) {
  return episode_of(id, reward, {prompt(-1, 3), turn(0, {0, 1, 1})});
}

frame_data ended(const std::string &id, wire::EpisodeStatus status) {
  auto out = plain(id, 100);
  out.finish->status = status;
  return out;
}

body<wire::GroupAnnotations> annotations_of(const body<wire::GroupHeader> &header,
                                            const env_config &config = {}) {
  auto bytes = annotate(header, config, {});
  BOOST_REQUIRE_MESSAGE(bytes, bytes.error().message);
  auto out = parse<wire::GroupAnnotations>(std::move(bytes->annotations));
  BOOST_REQUIRE_MESSAGE(out, out.error().message);
  return std::move(*out);
}

std::vector<float> advantages_of(const body<wire::GroupAnnotations> &annotations) {
  std::vector<float> out;
  for (const auto *trace : *annotations->traces())
    out.push_back(trace->advantage());
  return out;
}

const wire::SampleAnnotation &sample_of(const body<wire::GroupAnnotations> &annotations,
                                        flatbuffers::uoffset_t trace = 0) {
  return *annotations->traces()->Get(trace)->samples()->Get(0);
}

std::size_t kept_samples(const body<wire::GroupAnnotations> &annotations) {
  std::size_t kept = 0;
  for (const auto *trace : *annotations->traces())
    for (const auto *sample : *trace->samples())
      kept += sample->kept() ? 1U : 0U;
  return kept;
}

env_config gated() {
  env_config config;
  config.gate = {.reject_min = 0.0, .reject_max = 0.0};
  return config;
}

} // namespace

BOOST_AUTO_TEST_SUITE(annotations)

BOOST_AUTO_TEST_CASE(they_name_the_group_and_the_algorithm) {
  const auto header = header_of({plain("a", 1), plain("b", 0)});
  const auto annotations = annotations_of(header);
  BOOST_TEST(text_of(annotations->key()->task()) == "task");
  BOOST_TEST(text_of(annotations->source()) == "source");
  BOOST_TEST(annotations->ordinal() == 7U);
  BOOST_TEST(text_of(annotations->algorithm()) == "grpo");
  BOOST_TEST(annotations->admitted());
}

BOOST_AUTO_TEST_CASE(a_mixed_group_is_kept_without_streams) {
  const auto annotations = annotations_of(header_of({plain("a", 1), plain("b", 0)}));
  BOOST_TEST(advantages_of(annotations) == (std::vector<float>{0.5F, -0.5F}),
             boost::test_tools::per_element());
  for (flatbuffers::uoffset_t i = 0; i < 2; ++i) {
    BOOST_TEST(sample_of(annotations, i).kept());
    BOOST_TEST(!sample_of(annotations, i).prune_rl());
    BOOST_TEST((sample_of(annotations, i).rl()->rule() == wire::StreamRule::Absent));
  }
}

BOOST_AUTO_TEST_CASE(a_uniform_group_is_pruned_by_default_and_gated_with_a_gate_at_zero) {
  std::vector<frame_data> episodes;
  for (int i = 0; i < 5; ++i)
    episodes.push_back(plain(std::to_string(i), 0.3));
  const auto header = header_of(episodes);
  const auto pruned = annotations_of(header);
  BOOST_TEST(pruned->admitted());
  BOOST_TEST(kept_samples(pruned) == 0U);
  BOOST_TEST(!annotations_of(header, gated())->admitted());
}

BOOST_AUTO_TEST_CASE(one_reward_apart_passes_the_gate) {
  BOOST_TEST(annotations_of(header_of({plain("a", 0), plain("b", 0), plain("c", 1)}), gated())
                 ->admitted());
}

BOOST_AUTO_TEST_CASE(survivors_are_scored_without_their_failed_siblings) {
  std::vector<frame_data> episodes{ended("e", wire::EpisodeStatus::Errored),
                                   ended("c", wire::EpisodeStatus::Cancelled)};
  for (double reward : {1.0, 1.0, 0.0, 0.0, 1.0, 0.0})
    episodes.push_back(plain(std::to_string(episodes.size()), reward));
  const auto annotations = annotations_of(header_of(episodes));
  BOOST_TEST(advantages_of(annotations) ==
                 (std::vector<float>{0.5F, 0.5F, -0.5F, -0.5F, 0.5F, -0.5F}),
             boost::test_tools::per_element());
  BOOST_TEST(annotations->traces()->Get(0)->episode() == 2U);
}

BOOST_AUTO_TEST_CASE(a_rejected_member_without_data_changes_no_baseline) {
  auto group = group_of({plain("a", 1), plain("b", 0)});
  group.episodes.insert(group.episodes.begin() + 1, {.data = std::nullopt,
                                                     .id = "refused",
                                                     .attempt = 0,
                                                     .status = wire::EpisodeStatus::Rejected,
                                                     .reason = "bad mask"});
  const auto annotations = annotations_of(header_of(group));
  BOOST_TEST(advantages_of(annotations) == (std::vector<float>{0.5F, -0.5F}),
             boost::test_tools::per_element());
  BOOST_TEST(annotations->traces()->Get(1)->episode() == 2U);
}

BOOST_AUTO_TEST_CASE(one_survivor_of_eight_has_advantage_zero_and_is_pruned) {
  std::vector<frame_data> episodes{plain("survivor", 1)};
  for (int i = 0; i < 7; ++i)
    episodes.push_back(ended(std::to_string(i), wire::EpisodeStatus::Errored));
  const auto annotations = annotations_of(header_of(episodes));
  BOOST_REQUIRE(annotations->traces()->size() == 1U);
  BOOST_TEST(annotations->traces()->Get(0)->advantage() == 0.0F);
  BOOST_TEST(kept_samples(annotations) == 0U);
}

BOOST_AUTO_TEST_CASE(a_group_that_failed_whole_has_no_traces_and_is_no_error) {
  std::vector<frame_data> episodes;
  for (int i = 0; i < 8; ++i)
    episodes.push_back(ended(std::to_string(i), wire::EpisodeStatus::Errored));
  const auto annotations = annotations_of(header_of(episodes), gated());
  BOOST_TEST(annotations->traces()->size() == 0U);
  BOOST_TEST(annotations->admitted());
}

BOOST_AUTO_TEST_CASE(an_empty_answer_leaves_the_baseline_of_its_siblings_alone) {
  std::vector<frame_data> episodes{episode_of("empty", 10, {prompt(-1, 3), turn(0, {})})};
  for (int i = 0; i < 7; ++i)
    episodes.push_back(plain(std::to_string(i), 0));
  const auto annotations = annotations_of(header_of(episodes));
  BOOST_REQUIRE(annotations->traces()->size() == 7U);
  for (auto advantage : advantages_of(annotations))
    BOOST_TEST(advantage == 0.0F);
}

BOOST_AUTO_TEST_CASE(evaluation_and_untrained_agents_are_not_scored) {
  auto evaluation = plain("eval", 50);
  evaluation.eval = true;
  auto judge = plain("judge", 50);
  judge.finish->traces[0].agent_trainable = false;
  auto failed = plain("failed", 50);
  failed.finish->traces[0].ok = false;
  const auto annotations =
      annotations_of(header_of({evaluation, judge, failed, plain("a", 1), plain("b", 0)}));
  BOOST_TEST(advantages_of(annotations) == (std::vector<float>{0.5F, -0.5F}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(all_agents_of_a_group_share_one_baseline) {
  auto first = plain("a", 1);
  add_trace(first, 0, {turn(-1, {1})});
  const auto annotations = annotations_of(header_of({first, plain("b", 0.5)}));
  BOOST_TEST(advantages_of(annotations) == (std::vector<float>{0.5F, -0.5F, 0.0F}),
             boost::test_tools::per_element());
  BOOST_TEST(annotations->traces()->Get(1)->trace() == 1U);
}

BOOST_AUTO_TEST_CASE(prompt_aggregation_becomes_a_weight_on_the_mask) {
  env_config config;
  config.aggregation = loss_aggregation::prompt;
  const auto annotations = annotations_of(header_of({plain("a", 1), plain("b", 0)}), config);
  BOOST_TEST((sample_of(annotations).rl()->rule() == wire::StreamRule::OnMask));
  BOOST_TEST(sample_of(annotations).rl()->value() == 0.25F);
}

BOOST_AUTO_TEST_CASE(routing_to_ce_keeps_a_uniform_group) {
  env_config config;
  config.action_loss_type = action_loss::ce;
  const auto annotations = annotations_of(header_of({plain("a", 1), plain("b", 1)}), config);
  BOOST_TEST(kept_samples(annotations) == 2U);
  BOOST_TEST((sample_of(annotations).rl()->rule() == wire::StreamRule::Zeros));
  BOOST_TEST((sample_of(annotations).ce()->rule() == wire::StreamRule::OnMask));
  BOOST_TEST(sample_of(annotations).ce()->value() == 1.0F);
}

BOOST_AUTO_TEST_CASE(grpo_stands_over_advantages_that_came_with_nodes) {
  auto first = plain("a", 1);
  first.nodes[1].advantages = {7.0F, 7.0F};
  const auto annotations = annotations_of(header_of({first, plain("b", 0)}));
  BOOST_TEST((annotations->traces()->Get(0)->advantage_rule() == wire::AdvantageRule::Constant));
  BOOST_TEST(annotations->traces()->Get(0)->advantage() == 0.5F);
}

BOOST_AUTO_TEST_CASE(without_an_algorithm_the_nodes_advantages_count) {
  env_config config;
  config.algorithm = "none";
  auto episode = plain("a", 1);
  episode.nodes[1].advantages = {0.0F, 1.0F};
  const auto annotations = annotations_of(header_of({episode}), config);
  BOOST_TEST((annotations->traces()->Get(0)->advantage_rule() == wire::AdvantageRule::Nodes));
  BOOST_TEST(sample_of(annotations).kept());
  BOOST_TEST(sample_of(annotations).prune_rl());
  BOOST_TEST((sample_of(annotations).rl()->rule() == wire::StreamRule::OnMask));
}

BOOST_AUTO_TEST_CASE(an_rl_sample_without_advantages_is_an_error_that_names_it) {
  env_config config;
  config.algorithm = "none";
  const auto header = header_of({plain("a", 1)});
  const auto found = annotate(header, config, {});
  BOOST_REQUIRE(!found);
  BOOST_TEST(found.error().message.find("group env/task/group of run run: episode 'a', trace 0, "
                                        "branch with leaf 1") != std::string::npos);
  config.action_loss_type = action_loss::ce;
  BOOST_TEST(annotate(header, config, {}).has_value());
}

BOOST_AUTO_TEST_CASE(a_gated_group_needs_no_advantages_on_all_samples) {
  auto config = gated();
  config.algorithm = "none";
  auto zero = plain("a", 1);
  zero.nodes[1].advantages = {0.0F, 0.0F};
  const auto annotations = annotations_of(header_of({zero, plain("b", 1)}), config);
  BOOST_TEST(!annotations->admitted());
}

BOOST_AUTO_TEST_CASE(an_unknown_algorithm_is_an_error) {
  env_config config;
  config.algorithm = "gppo";
  const auto found = annotate(header_of({plain("a", 1)}), config, {});
  BOOST_REQUIRE(!found);
  BOOST_TEST((found.error().code == errc::bad_config));
}

BOOST_AUTO_TEST_CASE(what_a_filter_drops_is_not_kept_and_still_counts_in_the_baseline) {
  auto loops = plain("a", 1);
  loops.nodes[1].logprobs = {-0.001F, -0.001F};
  filter_rules rules;
  rules.repetition = filter_rules::certain_run{2, -0.01F};
  const auto header = header_of(group_of({loops, plain("b", 0)}), no_cut, rules);
  env_config config;
  config.filter.repetition.action = filter_action::count;
  BOOST_TEST(kept_samples(annotations_of(header, config)) == 2U);
  config.filter.repetition.action = filter_action::drop;
  const auto annotations = annotations_of(header, config);
  BOOST_TEST(advantages_of(annotations) == (std::vector<float>{0.5F, -0.5F}),
             boost::test_tools::per_element());
  BOOST_TEST(!sample_of(annotations, 0).kept());
  BOOST_TEST(sample_of(annotations, 0).filtered());
  BOOST_TEST(sample_of(annotations, 1).kept());
  BOOST_TEST(!sample_of(annotations, 1).filtered());
  // Another filter's find is none of this one's business.
  config.filter.repetition.action = filter_action::off;
  config.filter.gibberish.action = filter_action::drop;
  BOOST_TEST(kept_samples(annotations_of(header, config)) == 2U);
}

BOOST_AUTO_TEST_CASE(the_same_header_gives_the_same_bytes) {
  const auto header = header_of({plain("a", 1), plain("b", 0.1), plain("c", 0.7)});
  BOOST_TEST(std::ranges::equal(annotate(header, {}, {})->annotations.bytes(),
                                annotate(header, {}, {})->annotations.bytes()));
}

BOOST_AUTO_TEST_SUITE_END()
