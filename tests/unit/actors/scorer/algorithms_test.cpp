// SPDX-License-Identifier: Apache-2.0
// What holds for every algorithm: who is scored, and what becomes of a group whose members failed.
#include <boost/test/unit_test.hpp>

#include "actors/scorer/annotate.hpp"
#include "actors/scorer/rae.hpp"
#include "tests/support/groups.hpp"
#include "tests/support/reference.hpp"

using namespace millrace;
using namespace millrace::test;

namespace {

const std::vector<std::string> names{
    "grpo", "hierarchical_grpo", "max_rl", "rae", "echo", "sft", "opd", "opsd", "none"};

env_config config_of(const std::string &name) {
  env_config out;
  out.algorithm = name;
  if (name == "echo")
    out.echo.roles = {{"tool", 0.5}};
  return out;
}

/// Advantages that `none` can go by come with the nodes.
frame_data plain(const std::string &id, double reward) {
  auto out = episode_of(id, reward, {prompt(-1, 3), turn(0, {0, 1, 1})});
  out.nodes[1].advantages = {0.25F, 0.5F};
  return out;
}

frame_data ended(const std::string &id, wire::EpisodeStatus status) {
  auto out = plain(id, 100);
  out.finish->status = status;
  return out;
}

struct answered {
  body<wire::GroupAnnotations> annotations;
  std::vector<std::uint8_t> after;
};

answered answer(const std::vector<frame_data> &episodes, const env_config &config,
                std::span<const std::uint8_t> state = {}) {
  const auto header = header_of(episodes);
  const given_reference reference(header, episodes);
  auto found = annotate(header, config, {.state = state, .reference = &reference.values});
  BOOST_REQUIRE_MESSAGE(found, found.error().message);
  return {parse<wire::GroupAnnotations>(std::move(found->annotations)).value(),
          std::move(found->after)};
}

struct scored {
  std::uint32_t episode;
  float advantage;

  bool operator==(const scored &) const = default;
};

std::vector<scored> scores_of(const answered &in, std::uint32_t first_episode) {
  std::vector<scored> out;
  for (const auto *trace : *in.annotations->traces())
    out.push_back({trace->episode() - first_episode, trace->advantage()});
  return out;
}

} // namespace

BOOST_AUTO_TEST_SUITE(algorithms)

BOOST_AUTO_TEST_CASE(the_list_of_this_test_is_all_there_are) {
  std::string all;
  for (const auto &name : names)
    all += (all.empty() ? "" : ", ") + name;
  BOOST_TEST(all == algorithm_names());
}

BOOST_AUTO_TEST_CASE(survivors_are_scored_as_if_their_failed_siblings_had_never_been) {
  for (const auto &name : names) {
    std::vector<frame_data> survivors;
    for (double reward : {1.0, 1.0, 0.0, 0.0, 1.0, 0.0})
      survivors.push_back(plain(std::to_string(survivors.size()), reward));
    auto all = survivors;
    all.insert(all.begin(), {ended("e", wire::EpisodeStatus::Errored),
                             ended("c", wire::EpisodeStatus::Cancelled)});
    const auto got = answer(all, config_of(name));
    const auto want = answer(survivors, config_of(name));
    BOOST_TEST(scores_of(want, 0).size() == 6U, name);
    BOOST_TEST((scores_of(got, 2) == scores_of(want, 0)), name);
    BOOST_TEST(got.after == want.after, name);
  }
}

BOOST_AUTO_TEST_CASE(one_survivor_of_eight_teaches_nothing_where_groups_are_compared) {
  for (const auto &name : names) {
    std::vector<frame_data> episodes{plain("survivor", 1)};
    for (int i = 0; i < 7; ++i)
      episodes.push_back(ended(std::to_string(i), wire::EpisodeStatus::Errored));
    const auto got = answer(episodes, config_of(name));
    BOOST_REQUIRE(got.annotations->traces()->size() == 1U);
    const auto &trace = *got.annotations->traces()->Get(0);
    const bool relative = find_algorithm(name)->group_relative;
    BOOST_TEST(trace.samples()->Get(0)->kept() == !relative, name);
    if (relative)
      BOOST_TEST(trace.advantage() == 0.0F, name);
  }
}

BOOST_AUTO_TEST_CASE(a_group_that_failed_whole_has_no_traces_and_leaves_the_state_alone) {
  const auto state = encode_baselines({{"agent", 0.5}});
  for (const auto &name : names) {
    std::vector<frame_data> episodes;
    for (int i = 0; i < 8; ++i)
      episodes.push_back(ended(std::to_string(i), wire::EpisodeStatus::Errored));
    const auto got = answer(episodes, config_of(name), state);
    BOOST_TEST(got.annotations->traces()->size() == 0U, name);
    BOOST_TEST(got.after == (name == "rae" ? state : std::vector<std::uint8_t>{}), name);
    BOOST_TEST(answer(episodes, config_of(name)).after.empty(), name);
  }
}

BOOST_AUTO_TEST_CASE(an_empty_answer_counts_nowhere) {
  for (const auto &name : names) {
    const auto empty = episode_of("empty", 10, {prompt(-1, 3), turn(0, {})});
    const auto got = answer({empty, plain("a", 1), plain("b", 0)}, config_of(name));
    const auto want = answer({plain("a", 1), plain("b", 0)}, config_of(name));
    BOOST_TEST((scores_of(got, 1) == scores_of(want, 0)), name);
  }
}

BOOST_AUTO_TEST_CASE(each_trains_with_its_own_loss_unless_told_otherwise) {
  for (const auto &name : names) {
    const auto got = answer({plain("a", 1), plain("b", 0)}, config_of(name));
    const auto &sample = *got.annotations->traces()->Get(0)->samples()->Get(0);
    const bool ce = name == "sft";
    const bool ref_kl = name == "opd" || name == "opsd";
    using wire::StreamRule;
    BOOST_TEST((sample.rl()->rule() == (ce || ref_kl ? StreamRule::Zeros : StreamRule::Absent)),
               name);
    BOOST_TEST((sample.ce()->rule() == (ce ? StreamRule::OnMask : StreamRule::Absent)), name);
    BOOST_TEST((sample.ref_kl()->rule() == (ref_kl ? StreamRule::OnMask : StreamRule::Absent)),
               name);
    BOOST_TEST(sample.kept(), name);
  }
}

BOOST_AUTO_TEST_CASE(only_what_needs_a_state_or_a_reference_asks_for_it) {
  for (const auto &name : names) {
    const auto want = name == "rae"                     ? score_needs::state
                      : name == "opd" || name == "opsd" ? score_needs::reference
                                                        : score_needs::nothing;
    BOOST_TEST((needs_of(config_of(name)) == want), name);
  }
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(states)

BOOST_AUTO_TEST_CASE(a_group_goes_on_from_the_state_that_the_last_one_left) {
  auto config = config_of("rae");
  config.decay = 0.5;
  const auto first = answer({plain("a", 1), plain("b", 0)}, config);
  BOOST_TEST(decode_baselines(first.after).value().at("agent") == 0.25);
  const auto second = answer({plain("c", 1)}, config, first.after);
  BOOST_TEST(second.annotations->traces()->Get(0)->advantage() == 0.75F);
  BOOST_TEST(decode_baselines(second.after).value().at("agent") == 0.625);
}

BOOST_AUTO_TEST_CASE(a_gated_group_moves_the_state_all_the_same) {
  auto config = config_of("rae");
  config.gate = {.reject_min = -10.0, .reject_max = 10.0};
  const auto got = answer({plain("a", 1)}, config);
  BOOST_TEST(!got.annotations->admitted());
  BOOST_TEST(decode_baselines(got.after).value().contains("agent"));
}

BOOST_AUTO_TEST_CASE(a_damaged_state_is_an_error_that_names_group_and_key) {
  auto state = encode_baselines({{"agent", 0.5}});
  state[5] ^= 1; // the identifier
  const auto found = annotate(header_of({plain("a", 1)}), config_of("rae"), {.state = state});
  BOOST_REQUIRE(!found);
  BOOST_TEST(found.error().message.find(
                 "group env/task/group of run run: the state of key 'env'") != std::string::npos,
             found.error().message);
}

BOOST_AUTO_TEST_CASE(other_algorithms_do_not_look_at_a_state) {
  const std::vector<std::uint8_t> nonsense{1, 2, 3};
  BOOST_TEST(answer({plain("a", 1)}, config_of("grpo"), nonsense).after.empty());
}

BOOST_AUTO_TEST_SUITE_END()
