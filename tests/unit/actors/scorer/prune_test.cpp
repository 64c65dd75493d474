// SPDX-License-Identifier: Apache-2.0
#include "actors/scorer/prune.hpp"

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include <boost/test/unit_test.hpp>

#include "actors/graph/echo.hpp"
#include "actors/packer/gather.hpp"
#include "actors/scorer/annotate.hpp"
#include "actors/scorer/routing.hpp"
#include "actors/trainer/tensors.hpp"
#include "tests/support/groups.hpp"

using namespace millrace;
using namespace millrace::test;
using floats = std::vector<float>;

namespace {

/// A sample token by token, as the rules of the published format say it, without headers.
struct plain_sample {
  std::vector<std::uint8_t> mask;
  std::optional<floats> advantages;
  std::optional<floats> rl, ce, ref_kl;
  bool kept = true;
};

using stream_of_node = std::optional<floats> node_data::*;

std::vector<std::vector<std::size_t>> paths_of(const std::vector<node_data> &nodes) {
  std::set<std::int32_t> parents;
  for (const auto &node : nodes)
    parents.insert(node.parent);
  std::vector<std::vector<std::size_t>> out;
  for (std::size_t leaf = 0; leaf < nodes.size(); ++leaf) {
    if (parents.contains(static_cast<std::int32_t>(leaf)))
      continue;
    std::vector<std::size_t> path;
    for (auto i = static_cast<std::int32_t>(leaf); i >= 0;
         i = nodes[static_cast<std::size_t>(i)].parent)
      path.insert(path.begin(), static_cast<std::size_t>(i));
    out.push_back(path);
  }
  return out;
}

bool any(const floats &values) {
  return std::ranges::any_of(values, [](float x) { return x != 0; });
}

std::optional<floats> join_weights(const std::vector<node_data> &nodes,
                                   const std::vector<std::size_t> &path, stream_of_node stream,
                                   std::set<std::size_t> &used) {
  floats out;
  for (auto i : path) {
    const auto &weights = nodes[i].*stream;
    const bool counts = weights && !used.contains(i);
    for (std::size_t t = 0; t < nodes[i].token_ids.size(); ++t)
      out.push_back(counts ? (*weights)[t] : 0.0F);
    if (counts && any(*weights))
      used.insert(i);
  }
  return any(out) ? std::optional(out) : std::nullopt;
}

plain_sample join(const std::vector<node_data> &nodes, const std::vector<std::size_t> &path,
                  std::optional<float> score, std::set<std::size_t> &trained) {
  plain_sample out;
  floats advantages;
  bool scored = false;
  for (auto i : path) {
    const auto &node = nodes[i];
    const bool off = node.sampled && trained.contains(i);
    std::size_t next = 0;
    for (auto bit : node.mask) {
      out.mask.push_back(off ? 0 : bit);
      const bool has = score || node.advantages;
      advantages.push_back(bit == 0 || !has ? 0.0F : score ? *score : (*node.advantages)[next]);
      next += bit;
    }
    scored |= score || node.advantages.has_value();
    if (node.sampled && next > 0)
      trained.insert(i);
  }
  if (scored)
    out.advantages = advantages;
  return out;
}

void route_plain(plain_sample &sample, action_loss loss) {
  if (loss == action_loss::rl)
    return;
  sample.rl = floats(sample.mask.size(), 0.0F);
  floats on_mask(sample.mask.begin(), sample.mask.end());
  if (loss == action_loss::ref_kl) {
    sample.ref_kl = on_mask;
    return;
  }
  if (!sample.ce)
    sample.ce = on_mask;
  for (std::size_t t = 0; t < sample.mask.size(); ++t)
    if (sample.mask[t] != 0)
      (*sample.ce)[t] = 1.0F;
}

void prune_plain(plain_sample &sample) {
  if (!sample.advantages)
    return;
  auto rl = sample.rl ? *sample.rl : floats(sample.mask.begin(), sample.mask.end());
  bool changed = false;
  bool left = false;
  for (std::size_t t = 0; t < rl.size(); ++t) {
    if (sample.mask[t] != 0 && (*sample.advantages)[t] == 0 && rl[t] != 0) {
      rl[t] = 0;
      changed = true;
    }
    left |= sample.mask[t] != 0 && rl[t] != 0;
  }
  if (!changed)
    return;
  sample.rl = rl;
  sample.kept = left || (sample.ce && any(*sample.ce)) || (sample.ref_kl && any(*sample.ref_kl));
}

/// What echo adds to the ce weights of the nodes of a trainable branch.
void echo_plain(std::vector<node_data> &nodes, const std::vector<std::size_t> &path,
                const std::map<std::string, double> &roles) {
  bool after_a_turn = false;
  for (auto i : path) {
    auto &node = nodes[i];
    const auto alpha = roles.find(node.role);
    const auto n = node.token_ids.size();
    floats weights(n, 0.0F);
    for (std::size_t t = 0; t < n; ++t)
      if (after_a_turn && !node.sampled && alpha != roles.end() &&
          (node.is_content.size() != n || node.is_content[t] != 0) &&
          (!node.echo_mask || (*node.echo_mask)[t] != 0))
        weights[t] = static_cast<float>(alpha->second);
    after_a_turn |= node.sampled;
    if (!any(weights))
      continue;
    if (!node.ce_weights)
      node.ce_weights = floats(n, 0.0F);
    for (std::size_t t = 0; t < n; ++t)
      (*node.ce_weights)[t] = std::max((*node.ce_weights)[t], weights[t]);
  }
}

/// The samples of a trace, routed and pruned.
std::vector<plain_sample> plain_samples(std::vector<node_data> nodes, std::optional<float> score,
                                        std::optional<float> rl_weight, const env_config &config) {
  std::vector<plain_sample> out;
  std::vector<std::vector<std::size_t>> paths;
  std::set<std::size_t> trained, rl, ce, ref_kl;
  for (const auto &path : paths_of(nodes)) {
    out.push_back(join(nodes, path, score, trained));
    if (std::ranges::count(out.back().mask, 1) == 0)
      out.pop_back();
    else
      paths.push_back(path);
  }
  for (const auto &path : paths)
    echo_plain(nodes, path, config.echo.roles);
  for (std::size_t i = 0; i < out.size(); ++i) {
    auto &sample = out[i];
    const auto &path = paths[i];
    sample.rl = join_weights(nodes, path, &node_data::rl_weights, rl);
    sample.ce = join_weights(nodes, path, &node_data::ce_weights, ce);
    sample.ref_kl = join_weights(nodes, path, &node_data::ref_kl_weights, ref_kl);
    if (rl_weight) {
      sample.rl = floats(sample.mask.begin(), sample.mask.end());
      for (auto &x : *sample.rl)
        x *= *rl_weight;
    }
    route_plain(sample, config.loss());
    prune_plain(sample);
  }
  return out;
}

std::vector<std::uint8_t> random_bits(std::minstd_rand &random, std::size_t n) {
  std::vector<std::uint8_t> out(n);
  for (auto &bit : out)
    bit = random() % 2;
  return out;
}

floats random_floats(std::minstd_rand &random, std::size_t n) {
  floats out(n);
  const auto zeros = random() % 3; // all, some, none
  for (auto &x : out)
    if (zeros != 0 && (zeros == 2 || random() % 2 == 0))
      x = static_cast<float>(1 + random() % 4) / 2;
  return out;
}

std::vector<node_data> random_trace(std::minstd_rand &random) {
  std::vector<node_data> out;
  for (std::int32_t i = 0; i < 8; ++i) {
    const auto parent =
        i == 0 ? -1 : static_cast<std::int32_t>(random() % static_cast<unsigned>(i));
    const std::size_t n = random() % 4;
    auto node = prompt(parent, n);
    node.sampled = random() % 3 != 0;
    for (auto &bit : node.mask)
      bit = random() % (node.sampled ? 2 : 6) == 0 ? 1 : 0;
    const auto k = count_true(node.mask);
    node.logprobs.assign(k, -1.0F);
    if (random() % 2 == 0)
      node.advantages = random_floats(random, k);
    if (random() % 3 == 0)
      node.rl_weights = random_floats(random, n);
    if (random() % 6 == 0)
      node.ce_weights = random_floats(random, n);
    if (random() % 12 == 0)
      node.ce_weights = floats(n, -1.0F); // echo raises what it leaves out to 0
    node.role = random() % 2 == 0 ? "tool" : "user";
    if (random() % 3 == 0)
      node.is_content = random_bits(random, n);
    if (random() % 3 == 0)
      node.echo_mask = random_bits(random, n);
    if (random() % 6 == 0)
      node.ref_kl_weights = random_floats(random, n);
    out.push_back(std::move(node));
  }
  return out;
}

micro_batch_tensors gathered(const std::vector<node_view> &nodes, const std::vector<float> &echo,
                             const branch &path, const trace_verdict &trace,
                             const sample_verdict &sample) {
  sample_source source;
  source.nodes = nodes;
  source.echo = echo;
  source.path = &path;
  source.tokens = static_cast<std::uint32_t>(path.tokens);
  source.advantage_rule =
      trace.score.advantage ? wire::AdvantageRule::Constant : wire::AdvantageRule::Nodes;
  source.advantage = trace.score.advantage.value_or(0.0F);
  source.rl = sample.rl;
  source.ce = sample.ce;
  source.ref_kl = sample.ref_kl;
  source.prune_rl = sample.prune_rl;
  source.env = "env";
  bin plan;
  plan.samples.push_back(source);
  auto parts = gather(plan);
  BOOST_REQUIRE_MESSAGE(parts, parts.error().message);
  const auto batch = micro_batch::parse(std::move(*parts));
  BOOST_REQUIRE_MESSAGE(batch, batch.error().message);
  micro_batch_tensors out;
  widen(*batch, out);
  return out;
}

bool same(const host_array<float> &got, const std::optional<floats> &want) {
  return got.has_value() == want.has_value() && (!want || std::ranges::equal(got.values(), *want));
}

} // namespace

BOOST_AUTO_TEST_SUITE(pruning)

/// The header alone decides what the tokens would: for random trees, scores, weights and routings,
/// the samples and streams are those of the rules applied token by token.
BOOST_AUTO_TEST_CASE(the_header_decides_as_the_tokens_would) {
  const auto seed = std::random_device{}();
  BOOST_TEST_MESSAGE("seed " << seed);
  std::minstd_rand random(seed);
  std::size_t pruned = 0;
  std::size_t changed = 0;
  std::size_t echoed = 0;
  for (int round = 0; round < 1500; ++round) {
    const auto nodes = random_trace(random);
    const auto header = header_of({episode_of("e", 0, nodes)});
    const auto &trace = *header->episodes()->Get(0)->traces()->Get(0);
    if (!is_eligible(trace))
      continue;
    scored_group scores;
    scores.traces.push_back({.episode = 0, .trace = 0, .advantage = std::nullopt});
    if (random() % 3 != 0)
      scores.traces[0].advantage = static_cast<float>(random() % 2) / 2;
    if (random() % 4 == 0)
      scores.rl_weight = 0.125F;
    env_config config;
    config.action_loss_type = std::array{action_loss::rl, action_loss::rl, action_loss::ce,
                                         action_loss::ref_kl}[random() % 4];
    if (random() % 2 == 0) {
      config.algorithm = "echo";
      config.echo.roles = {{"tool", 0.25}, {"assistant", 0.5}};
    }
    const auto verdict = judge_group(*header, scores, config);
    const auto want = plain_samples(nodes, scores.traces[0].advantage, scores.rl_weight, config);
    const auto episode = sealed_one(episode_of("e", 0, nodes));
    const auto views = episode.nodes(0);
    std::map<std::string_view, float> roles;
    for (const auto &entry : verdict.echo)
      roles.emplace(entry.role, entry.alpha);
    const auto echo = echo_weights(views, roles);
    const auto graph = *branches_of(views, echo);
    const auto &samples = verdict.traces[0].samples;
    BOOST_TEST_CONTEXT("seed " << seed << ", round " << round) {
      BOOST_TEST_REQUIRE(samples.size() == want.size());
      for (std::size_t i = 0; i < want.size(); ++i) {
        BOOST_TEST_REQUIRE(samples[i].kept == want[i].kept);
        pruned += want[i].kept ? 0U : 1U;
        changed += samples[i].prune_rl ? 1U : 0U;
        echoed +=
            std::ranges::any_of(graph.trainable[i].nodes, [&](auto n) { return echo[n] != 0; });
        if (!want[i].kept)
          continue;
        const auto got = gathered(views, echo, graph.trainable[i], verdict.traces[0], samples[i]);
        BOOST_TEST_REQUIRE(std::ranges::equal(got.loss_mask.values(), want[i].mask));
        BOOST_TEST_REQUIRE(same(got.rl_weights, want[i].rl));
        BOOST_TEST_REQUIRE(same(got.ce_weights, want[i].ce));
        BOOST_TEST_REQUIRE(same(got.ref_kl_weights, want[i].ref_kl));
      }
    }
  }
  BOOST_TEST(pruned > 100U); // the rounds reach the cases
  BOOST_TEST(changed > 100U);
  BOOST_TEST(echoed > 100U);
}

BOOST_AUTO_TEST_SUITE_END()
