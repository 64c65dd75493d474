// SPDX-License-Identifier: Apache-2.0
#include "actors/assembler/filters.hpp"

#include <cmath>
#include <limits>

#include <boost/test/unit_test.hpp>

#include "runtime/random.hpp"
#include "tests/support/groups.hpp"

using namespace millrace;
using namespace millrace::test;

namespace {

constexpr std::uint8_t gibberish = static_cast<std::uint8_t>(wire::FilterFlag::Gibberish);
constexpr std::uint8_t repetition = static_cast<std::uint8_t>(wire::FilterFlag::Repetition);
constexpr float certain = -0.001F;
constexpr float doubtful = -1.0F;

/// A turn whose logprobs are those, all trainable.
node_data turn_of(std::int32_t parent, std::vector<float> logprobs, std::int32_t first_id = 200) {
  auto node = turn(parent, std::vector<std::uint8_t>(logprobs.size(), 1), first_id);
  node.logprobs = std::move(logprobs);
  return node;
}

std::uint8_t found_in(std::vector<node_data> nodes, const filter_rules &rules) {
  const auto episode = sealed_one(episode_of("e", 1, std::move(nodes)));
  return filter_trace(episode.nodes(0), rules);
}

filter_rules runs_of(std::uint64_t window) {
  return {.gibberish = {}, .repetition = filter_rules::certain_run{window, -0.01F}};
}

filter_rules rare_above(std::int32_t id, float logprob) {
  return {.gibberish = filter_rules::rare_token{id, logprob}, .repetition = {}};
}

/// The definition: count up along each path, token by token.
bool naive_repetition(std::span<const node_view> nodes, const filter_rules::certain_run &rule) {
  std::vector<std::uint64_t> runs(nodes.size());
  bool found = false;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    auto run = nodes[i].parent < 0 ? 0 : runs[static_cast<std::size_t>(nodes[i].parent)];
    for (float logprob : nodes[i].logprobs) {
      run = logprob > rule.logprob_above ? run + 1 : 0;
      found = found || run >= rule.window;
    }
    runs[i] = run;
  }
  return found;
}

bool naive_gibberish(std::span<const node_view> nodes, const filter_rules::rare_token &rule) {
  for (const auto &node : nodes)
    for (std::size_t i = 0, k = 0; i < node.mask.size(); ++i)
      if (node.mask[i] != 0) {
        if (node.token_ids[i] > rule.id_above && node.logprobs[k] < rule.logprob_below)
          return true;
        ++k;
      }
  return false;
}

/// A random forest with masks, in which both filters find something about half of the time.
std::vector<node_data> random_nodes(random_source &choose) {
  std::vector<node_data> nodes;
  const auto count = 1 + choose.below(5);
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto parent = static_cast<std::int32_t>(choose.below(i + 1)) - 1;
    auto node = turn(parent, std::vector<std::uint8_t>(choose.below(12)), 90);
    node.logprobs.clear();
    for (auto &trains : node.mask)
      if (trains = choose.chance(70) ? 1 : 0; trains != 0)
        node.logprobs.push_back(choose.chance(80)   ? certain
                                : choose.chance(90) ? doubtful
                                                    : -20.0F);
    nodes.push_back(std::move(node));
  }
  return nodes;
}

} // namespace

BOOST_AUTO_TEST_SUITE(filters)

BOOST_AUTO_TEST_CASE(a_rare_and_unlikely_trainable_token_is_gibberish) {
  const auto rules = rare_above(200, -10);
  BOOST_TEST(found_in({prompt(-1, 3), turn_of(0, {-1, -11})}, rules) == gibberish); // id 201
  BOOST_TEST(found_in({prompt(-1, 3), turn_of(0, {-11, -1})}, rules) == 0); // id 200 is not above
  BOOST_TEST(found_in({prompt(-1, 3), turn_of(0, {-1, -10})}, rules) == 0); // nor is -10 below
}

BOOST_AUTO_TEST_CASE(logprobs_belong_to_the_trainable_tokens_alone) {
  // Ids 200 to 203; the only logprob is that of 202.
  auto masked = turn(0, {0, 0, 1, 0});
  masked.logprobs = {-11};
  BOOST_TEST(found_in({prompt(-1, 3), masked}, rare_above(202, -10)) == 0);
  BOOST_TEST(found_in({prompt(-1, 3), masked}, rare_above(201, -10)) == gibberish);
}

BOOST_AUTO_TEST_CASE(a_run_as_long_as_the_window_is_repetition) {
  const std::vector<float> three{doubtful, certain, certain, certain, doubtful};
  BOOST_TEST(found_in({turn_of(-1, three)}, runs_of(3)) == repetition);
  BOOST_TEST(found_in({turn_of(-1, three)}, runs_of(4)) == 0);
  BOOST_TEST(found_in({turn_of(-1, {certain, certain, doubtful, certain})}, runs_of(3)) == 0);
}

BOOST_AUTO_TEST_CASE(a_run_goes_on_over_a_prompt_and_down_its_own_path_only) {
  const auto two = turn_of(0, {certain, certain});
  const std::vector<node_data> line{prompt(-1, 3), two, prompt(1, 5), turn_of(2, {certain})};
  BOOST_TEST(found_in(line, runs_of(3)) == repetition);
  const std::vector<node_data> fork{prompt(-1, 3), two, turn_of(0, {certain})};
  BOOST_TEST(found_in(fork, runs_of(3)) == 0);
}

BOOST_AUTO_TEST_CASE(float32_logprobs_compare_as_they_would_in_double) {
  random_source choose(20240611);
  for (int i = 0; i < 2000; ++i) {
    const double bound = -static_cast<double>(choose.below(1'000'000'007)) / 3e7;
    filter_config config;
    config.repetition = {filter_action::count, 1, std::exp(bound)};
    config.gibberish = {filter_action::count, 0, -bound};
    const auto rules = rules_of(config, 1);
    const double above = std::log(config.repetition.prob_threshold);
    auto logprob = static_cast<float>(bound);
    for (float towards : {-HUGE_VALF, 0.0F})
      for (float x : {logprob, std::nextafter(logprob, towards)}) {
        BOOST_TEST((x > rules.repetition->logprob_above) == (static_cast<double>(x) > above));
        BOOST_TEST((x < rules.gibberish->logprob_below) == (static_cast<double>(x) < bound));
      }
  }
}

BOOST_AUTO_TEST_CASE(the_bounds_are_those_of_the_config) {
  filter_config config;
  BOOST_TEST(!rules_of(config, 1000).gibberish.has_value());
  BOOST_TEST(!rules_of(config, 1000).repetition.has_value());
  config.gibberish.action = filter_action::drop;
  config.repetition.action = filter_action::count;
  const auto rules = rules_of(config, 150'000);
  BOOST_TEST(rules.gibberish->id_above == 100'000);
  BOOST_TEST(std::abs(rules.gibberish->logprob_below + 13.918391F) < 1e-5F); // -ln 150000 - 2
  BOOST_TEST(rules.repetition->window == 3000U);
  BOOST_TEST(std::abs(rules.repetition->logprob_above + 0.0100503F) < 1e-6F); // ln 0.99
  BOOST_TEST(dropping_filters(config) == gibberish);
}

BOOST_AUTO_TEST_CASE(random_traces_are_judged_as_token_by_token) {
  const std::uint64_t seed = 5;
  random_source choose(seed);
  int finds[2] = {};
  for (int i = 0; i < 3000; ++i) {
    BOOST_TEST_CONTEXT("seed " << seed << ", round " << i) {
      const auto episode = sealed_one(episode_of("e", 1, random_nodes(choose)));
      const auto nodes = episode.nodes(0);
      auto rules = runs_of(1 + choose.below(12));
      rules.gibberish = filter_rules::rare_token{static_cast<std::int32_t>(88 + choose.below(8)),
                                                 choose.chance(50) ? -0.5F : -2.0F};
      const auto found = filter_trace(nodes, rules);
      const bool rare = naive_gibberish(nodes, *rules.gibberish);
      const bool run = naive_repetition(nodes, *rules.repetition);
      BOOST_TEST(((found & gibberish) != 0) == rare);
      BOOST_TEST(((found & repetition) != 0) == run);
      finds[0] += rare ? 1 : 0;
      finds[1] += run ? 1 : 0;
    }
  }
  BOOST_TEST(finds[0] > 500);
  BOOST_TEST(finds[1] > 500);
}

BOOST_AUTO_TEST_CASE(only_traces_that_can_train_are_looked_at) {
  const auto flags = [](const frame_data &episode) {
    const auto header = make_episode_header(sealed_one(episode), no_cut, runs_of(2));
    return header.traces.at(0).filters;
  };
  auto loops = episode_of("e", 1, {prompt(-1, 3), turn_of(0, {certain, certain})});
  BOOST_TEST(flags(loops) == repetition);
  auto eval = loops;
  eval.eval = true;
  BOOST_TEST(flags(eval) == 0);
  auto failed = loops;
  failed.finish->traces[0].ok = false;
  BOOST_TEST(flags(failed) == 0);
  auto errored = loops;
  errored.finish->status = wire::EpisodeStatus::Errored;
  BOOST_TEST(flags(errored) == 0);
}

BOOST_AUTO_TEST_SUITE_END()
