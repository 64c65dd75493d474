// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include "actors/conform/cases.hpp"
#include "actors/conform/comparison.hpp"
#include "actors/conform/graph_group.hpp"
#include "actors/graph/credit.hpp"
#include "actors/graph/echo.hpp"
#include "actors/packer/gather.hpp"
#include "actors/scorer/echo.hpp"
#include "actors/trainer/tensors.hpp"

namespace millrace {

namespace {

/// One trace of the group, and what became of it.
struct trace_result {
  std::vector<node_view> nodes;
  trace_graph graph;
  std::vector<float> echo;               ///< sample_source::echo
  const trace_verdict *routed = nullptr; ///< null: not eligible
  const trace_verdict *pruned = nullptr;
  std::optional<double> scale; ///< tolerance of advantages; nothing: exact
  std::string_view env;
  float temperature = 1;
};

result<micro_batch_tensors> gather_sample(const trace_result &trace, const sample_verdict &sample,
                                          const trace_verdict &of) {
  const auto &path = trace.graph.trainable[sample.branch];
  sample_source source;
  source.nodes = trace.nodes;
  source.path = &path;
  source.echo = trace.echo;
  source.tokens = static_cast<std::uint32_t>(path.tokens);
  source.advantage_rule =
      of.score.advantage ? wire::AdvantageRule::Constant : wire::AdvantageRule::Nodes;
  source.advantage = of.score.advantage.value_or(0.0F);
  source.rl = sample.rl;
  source.ce = sample.ce;
  source.ref_kl = sample.ref_kl;
  source.prune_rl = sample.prune_rl;
  source.temperature = trace.temperature;
  source.env = trace.env;
  bin plan;
  plan.samples.push_back(source);
  auto parts = gather(plan);
  if (!parts)
    return tl::unexpected(std::move(parts).error());
  auto batch = micro_batch::parse(std::move(*parts));
  if (!batch)
    return tl::unexpected(std::move(batch).error());
  micro_batch_tensors out;
  widen(*batch, out);
  if (!batch->advantages())
    out.advantages.make_absent();
  return out;
}

void compare_stream(comparison &to, const json::value &sample, std::string_view key,
                    const host_array<float> &got, std::optional<double> scale = std::nullopt) {
  const auto want = to.field(sample, key);
  if (want && to.present(*want, got.has_value()))
    to.numbers(*want, got.values(), scale);
}

void compare_experts(comparison &to, const json::value &want, const array_tensor &got) {
  if (!to.present(want, got.has_value()))
    return;
  std::string hex;
  for (auto byte : got.bytes.values())
    hex += fmt::format("{:02x}", std::to_integer<unsigned>(byte));
  if (const auto field = to.field(want, "data_hex"))
    to.text(*field, hex);
  if (const auto field = to.field(want, "dtype"))
    to.text(*field, name_of(got.type));
  if (const auto field = to.field(want, "shape"))
    to.integers(*field, std::vector<std::int64_t>(got.shape.begin(), got.shape.end()));
}

void compare_sample(comparison &to, const json::value &want, const micro_batch_tensors &got,
                    std::optional<double> scale) {
  if (const auto field = to.field(want, "token_ids"))
    to.integers(*field, got.input_ids.values());
  if (const auto field = to.field(want, "mask"))
    to.booleans(*field, got.loss_mask.values());
  if (const auto field = to.field(want, "env_name"))
    to.text(*field, got.env_names.front());
  compare_stream(to, want, "logprobs", got.inference_logprobs);
  compare_stream(to, want, "temperatures", got.temperatures);
  compare_stream(to, want, "advantages", got.advantages, scale);
  compare_stream(to, want, "ref_logprobs", got.ref_logprobs);
  compare_stream(to, want, "rl_weights", got.rl_weights);
  compare_stream(to, want, "ce_weights", got.ce_weights);
  compare_stream(to, want, "ref_kl_weights", got.ref_kl_weights);
  if (const auto field = to.field(want, "routed_experts"))
    compare_experts(to, *field, got.routed_experts);
}

void compare_samples(comparison &to, const json::value &want, const trace_result &got) {
  const auto list = to.items(want, got.routed->samples.size());
  for (std::size_t i = 0; list && i < list->size(); ++i) {
    const auto sample = gather_sample(got, got.routed->samples[i], *got.routed);
    if (!sample)
      return to.differs((*list)[i], sample.error().message);
    compare_sample(to, (*list)[i], *sample, got.scale);
  }
}

void compare_pruned(comparison &to, const json::value &want, const trace_result &got) {
  const auto list = to.items(want, got.pruned->samples.size());
  for (std::size_t i = 0; list && i < list->size(); ++i) {
    const auto &verdict = got.pruned->samples[i];
    if (const auto field = to.field((*list)[i], "kept"))
      to.boolean(*field, verdict.kept);
    if (!verdict.kept)
      continue;
    const auto sample = gather_sample(got, verdict, *got.pruned);
    if (!sample)
      return to.differs((*list)[i], sample.error().message);
    compare_stream(to, (*list)[i], "rl_weights", sample->rl_weights);
  }
}

void compare_compact(comparison &to, const json::value &want, const node_values &got,
                     std::optional<double> scale) {
  const auto list = to.items(want, got.size());
  for (std::size_t i = 0; list && i < list->size(); ++i)
    if (to.present((*list)[i], got[i].has_value()))
      to.numbers((*list)[i], *got[i], scale);
}

/// The ce weights of each node after echo, which looks at trainable branches only.
node_values ce_weights_of(const trace_result &trace) {
  node_values out;
  for (const auto &node : trace.nodes)
    out.emplace_back(node.ce_weights ? std::optional(std::vector<float>(node.ce_weights->begin(),
                                                                        node.ce_weights->end()))
                                     : std::nullopt);
  for (const auto &path : trace.graph.trainable)
    for (auto i : path.nodes) {
      if (trace.echo.empty() || trace.echo[i] == 0)
        continue;
      if (!out[i])
        out[i].emplace(trace.nodes[i].token_ids.size(), 0.0F);
      raise_to_echo(trace.nodes[i], trace.echo[i], *out[i]);
    }
  return out;
}

void compare_weights(comparison &to, const json::value &want, const trace_result &got) {
  const auto list = to.items(want, got.nodes.size());
  const auto ce = ce_weights_of(got);
  for (std::size_t i = 0; list && i < list->size(); ++i) {
    const auto stream = [&](std::string_view key, const auto &values) {
      const auto field = (*list)[i].is_null() ? std::nullopt : *(*list)[i].field(key);
      if (field.has_value() != values.has_value())
        to.differs((*list)[i], fmt::format("'{}' is {}", key, values ? "there" : "missing"));
      else if (values)
        to.numbers(*field, *values);
    };
    stream("rl", got.nodes[i].rl_weights);
    stream("ce", ce[i]);
    stream("ref_kl", got.nodes[i].ref_kl_weights);
  }
}

void compare_paths(comparison &to, const json::value &want,
                   const std::vector<std::vector<std::uint32_t>> &got) {
  const auto list = to.items(want, got.size());
  for (std::size_t i = 0; list && i < list->size(); ++i)
    to.integers((*list)[i], got[i]);
}

void compare_graph(comparison &to, const json::value &want, const trace_graph &got) {
  std::vector<std::vector<std::uint32_t>> trainable;
  for (const auto &path : got.trainable)
    trainable.push_back(path.nodes);
  if (const auto field = to.field(want, "leaves"))
    to.integers(*field, got.leaves);
  if (const auto field = to.field(want, "branches"))
    compare_paths(to, *field, got.branches);
  if (const auto field = to.field(want, "trainable_branches"))
    compare_paths(to, *field, trainable);
}

/// The compact arrays of the nodes after all annotation.
void compare_nodes(comparison &to, const json::value &want, const trace_result &got) {
  node_values advantages;
  node_values reference;
  for (const auto &node : got.nodes) {
    const auto copy = [](const auto &from, node_values &into) {
      into.emplace_back(from ? std::optional(std::vector<float>(from->begin(), from->end()))
                             : std::nullopt);
    };
    copy(node.advantages, advantages);
    copy(node.reference_logprobs, reference);
  }
  if (got.pruned != nullptr && got.pruned->score.advantage)
    advantages = *assign_advantages(got.nodes, *got.pruned->score.advantage);
  if (const auto field = to.field(want, "node_advantages"))
    compare_compact(to, *field, advantages, got.scale);
  if (const auto field = to.field(want, "node_reference_logprobs"))
    compare_compact(to, *field, reference, std::nullopt);
  if (const auto field = to.field(want, "node_loss_weights"))
    compare_weights(to, *field, got);
  const auto scalar = scalar_advantage(advantages);
  if (const auto field = to.field(want, "scalar_advantage"))
    if (to.present(*field, scalar.has_value()))
      to.number(*field, *scalar, got.scale.value_or(0));
  const bool trains = std::ranges::any_of(advantages, [](const auto &node) {
    return node && std::ranges::any_of(*node, [](float x) { return x != 0; });
  });
  if (const auto field = to.field(want, "is_trainable"))
    to.boolean(*field, trains);
}

void compare_trace(comparison &to, const json::value &want, const trace_result &got) {
  const bool eligible = got.pruned != nullptr;
  if (const auto field = to.field(want, "eligible"))
    to.boolean(*field, eligible);
  compare_graph(to, want, got.graph);
  compare_nodes(to, want, got);
  if (const auto field = to.field(want, "samples"))
    if (to.present(*field, eligible))
      compare_samples(to, *field, got);
  if (const auto field = to.field(want, "after_prune"))
    if (to.present(*field, eligible))
      compare_pruned(to, *field, got);
}

const trace_verdict *verdict_of(const std::vector<trace_verdict> &verdicts, std::size_t episode,
                                std::size_t trace) {
  const auto found = std::ranges::find_if(verdicts, [&](const trace_verdict &verdict) {
    return verdict.score.episode == episode && verdict.score.trace == trace;
  });
  return found == verdicts.end() ? nullptr : &*found;
}

std::string compare_group(const json::value &expected, const graph_case &input,
                          const processed_group &group) {
  comparison to;
  if (const auto field = to.field(expected, "admit"))
    to.boolean(*field, group.verdict.admitted);
  std::size_t traces = 0;
  for (const auto &episode : group.episodes)
    traces += episode.trace_count();
  const auto field = to.field(expected, "traces");
  const auto list = field ? to.items(*field, traces) : std::nullopt;
  std::size_t next = 0;
  std::map<std::string_view, float> echo;
  for (const auto &entry : group.verdict.echo)
    echo.emplace(entry.role, entry.alpha);
  for (std::size_t e = 0; list && e < group.episodes.size(); ++e)
    for (std::size_t t = 0; t < group.episodes[e].trace_count(); ++t) {
      trace_result got;
      got.nodes = group.episodes[e].nodes(t);
      got.routed = verdict_of(group.routed, e, t);
      got.pruned = verdict_of(group.verdict.traces, e, t);
      if (got.routed != nullptr)
        got.echo = echo_weights(got.nodes, echo);
      got.graph = *branches_of(got.nodes, got.echo);
      if (input.env.algorithm != "none")
        got.scale = group.scale;
      got.env = input.env_name;
      got.temperature = static_cast<float>(input.env.temperature);
      compare_trace(to, (*list)[next++], got);
    }
  return to.difference();
}

} // namespace

case_outcome run_graph_case(const json::value &test) {
  const auto input = read_graph_case(test);
  if (!input)
    return case_outcome::fail(input.error().message);
  const auto group = process(*input);
  if (const auto error = test.field("expected_error"); error && *error)
    return group ? case_outcome::fail("accepted, expected a rejection") : case_outcome::pass();
  if (!group)
    return case_outcome::fail(group.error().message);
  const auto expected = test.get<json::value>("expected");
  if (!expected)
    return case_outcome::fail(expected.error().message);
  auto difference = compare_group(*expected, *input, *group);
  return difference.empty() ? case_outcome::pass() : case_outcome::fail(std::move(difference));
}

} // namespace millrace
