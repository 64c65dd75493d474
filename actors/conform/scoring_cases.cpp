// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <map>

#include "actors/assembler/group_header.hpp"
#include "actors/conform/cases.hpp"
#include "actors/conform/comparison.hpp"
#include "actors/scorer/annotate.hpp"
#include "actors/scorer/rae.hpp"

namespace millrace {

namespace {

/// Where a trace of the file stands in the group header.
struct place {
  std::uint32_t episode;
  std::uint32_t trace;
};

struct scoring_group {
  frame header;
  std::vector<place> places; ///< of the file's traces
  double scale = 0;          ///< largest absolute reward of the eligible traces
  double mean = 0;           ///< of their rewards
};

status read_agents(const json::value &config, std::vector<std::string> &out) {
  const auto list = config.find<json::value>("episode_agents", json::nulls::as_absent);
  if (!list || !*list)
    return list ? status{} : tl::unexpected(list.error());
  const auto items = (*list)->items();
  if (!items)
    return tl::unexpected(items.error());
  for (const auto &item : *items) {
    const auto name = item.as<std::string>();
    if (!name)
      return tl::unexpected(name.error());
    out.push_back(*name);
  }
  return {};
}

result<env_config> read_config(const json::value &test) {
  const auto config = test.get<json::value>("config");
  if (!config)
    return tl::unexpected(config.error());
  const auto penalty = config->find<json::value>("length_penalty", json::nulls::as_absent);
  const auto weighted = config->find<bool>("length_weighted_baseline", json::nulls::as_absent);
  const auto aggregation =
      config->find<std::string_view>("loss_aggregation", json::nulls::as_absent);
  if (!penalty || !weighted || !aggregation)
    return config->wrong("not the config of a scoring case");
  env_config out;
  const auto algorithm = test.get<std::string>("algorithm");
  const auto decay = config->find<double>("decay", json::nulls::as_absent);
  if (!algorithm || !decay)
    return config->wrong("not the config of a scoring case");
  out.algorithm = *algorithm;
  out.decay = decay->value_or(out.decay);
  MILLRACE_TRY(read_agents(*config, out.episode_agents));
  out.length_weighted_baseline = weighted->value_or(false);
  if (aggregation->value_or("mean") == "prompt")
    out.aggregation = loss_aggregation::prompt;
  if (!*penalty)
    return out;
  const auto output = (*penalty)->get<double>("num_output_tokens_weight");
  const auto input = (*penalty)->get<double>("num_input_tokens_weight");
  const auto turns = (*penalty)->get<double>("num_turns_weight");
  if (!output || !input || !turns)
    return (*penalty)->wrong("not a length penalty");
  out.penalty = {.num_output_tokens_weight = *output,
                 .num_input_tokens_weight = *input,
                 .num_turns_weight = *turns};
  return out;
}

result<trace_header> read_trace(const json::value &in) {
  const auto agent = in.get<std::string>("agent");
  const auto reward = in.get<double>("reward");
  const auto output = in.get<std::uint64_t>("num_output_tokens");
  const auto total = in.get<std::uint64_t>("num_total_tokens");
  const auto turns = in.get<std::uint64_t>("num_turns");
  const auto trainable = in.get<std::uint64_t>("trainable_tokens");
  const auto ok = in.get<bool>("ok");
  const auto agent_trainable = in.get<bool>("agent_trainable");
  for (const auto *number : {&output, &total, &turns, &trainable})
    if (!*number)
      return tl::unexpected(number->error());
  if (!agent || !reward || !ok || !agent_trainable)
    return in.wrong("not a trace of a scoring case");
  trace_header out;
  out.agent = *agent;
  out.agent_trainable = *agent_trainable;
  out.ok = *ok;
  out.reward = *reward;
  out.output_tokens = *output;
  out.total_tokens = *total;
  out.turns = static_cast<std::uint32_t>(*turns);
  out.trainable_tokens = *trainable;
  return out;
}

bool is_eligible(const trace_header &trace) {
  return trace.ok && trace.agent_trainable && trace.trainable_tokens > 0;
}

/// Episodes in the order of their first trace.
result<scoring_group> read_group(const json::value &in) {
  const auto traces = in.items();
  if (!traces)
    return tl::unexpected(traces.error());
  scoring_group out;
  std::vector<episode_header> episodes;
  std::map<std::string, std::uint32_t> index;
  std::size_t eligible = 0;
  for (const auto &item : *traces) {
    const auto id = item.get<std::string>("episode_id");
    auto trace = read_trace(item);
    if (!id || !trace)
      return tl::unexpected(id ? trace.error() : id.error());
    const auto [found, added] = index.emplace(*id, static_cast<std::uint32_t>(episodes.size()));
    if (added) {
      episodes.emplace_back();
      episodes.back().id = *id;
    }
    auto &episode = episodes[found->second];
    if (is_eligible(*trace)) {
      out.scale = std::max(out.scale, std::abs(trace->reward));
      out.mean += trace->reward;
      ++eligible;
    }
    out.places.push_back({found->second, static_cast<std::uint32_t>(episode.traces.size())});
    episode.traces.push_back(std::move(*trace));
  }
  out.mean /= static_cast<double>(std::max<std::size_t>(eligible, 1));
  auto header = make_group_header({.key = {.run = "", .env = "env", .task = "t", .group = "g"},
                                   .source = "",
                                   .ordinal = 0,
                                   .size = static_cast<std::uint32_t>(episodes.size())},
                                  episodes);
  if (!header)
    return tl::unexpected(header.error());
  out.header = std::move(*header);
  return out;
}

/// @param scale of the tolerance of advantages
void compare(comparison &to, const scoring_group &group, const scored_group &scores, double scale,
             const json::value &advantages, const json::value &rl_weight) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::optional<float>> got;
  for (const auto &score : scores.traces)
    got[{score.episode, score.trace}] = score.advantage;
  const auto list = to.items(advantages, group.places.size());
  for (std::size_t i = 0; list && i < list->size(); ++i) {
    const auto found = got.find({group.places[i].episode, group.places[i].trace});
    const bool scored = found != got.end() && found->second;
    if (to.present((*list)[i], scored))
      to.number((*list)[i], static_cast<double>(*found->second), scale);
  }
  if (to.present(rl_weight, scores.rl_weight.has_value()))
    to.number(rl_weight, static_cast<double>(*scores.rl_weight), 0.0);
}

/// @param scale largest absolute reward so far
void compare_state(comparison &to, const agent_baselines &state, double scale,
                   const json::value &want) {
  const auto members = want.members();
  if (!members || members->size() != state.size())
    return to.differs(want, fmt::format("baselines of {} agents", state.size()));
  for (const auto &[agent, value] : *members)
    if (const auto found = state.find(agent); found == state.end())
      to.differs(value, "there is no such agent");
    else
      to.number(value, found->second, scale);
}

/// The tolerance of a group's advantages.
double scale_of(const scoring_group &group, const env_config &config) {
  if (config.algorithm != "max_rl")
    return group.scale;
  return group.mean == 0 ? 0 : group.scale / std::abs(group.mean);
}

/// What differs, or nothing. Errors: no scoring case.
result<std::string> run(const json::value &test, const env_config &config) {
  const auto groups = test.get<json::value>("groups");
  const auto expected = test.get<json::value>("expected");
  const auto weights = test.get<json::value>("expected_rl_weight");
  for (const auto *part : {&groups, &expected, &weights})
    if (!*part)
      return tl::unexpected(part->error());
  const auto each_group = groups->items();
  const auto each_expected = expected->items();
  const auto each_weight = weights->items();
  for (const auto *part : {&each_group, &each_expected, &each_weight})
    if (!*part)
      return tl::unexpected(part->error());
  if (each_expected->size() != each_group->size() || each_weight->size() != each_group->size())
    return expected->wrong("not as many results as groups");
  const auto baselines =
      test.find<json::value>("expected_baselines_after_group", json::nulls::as_absent);
  const auto each_state =
      baselines && *baselines ? (*baselines)->items() : result<std::vector<json::value>>{};
  if (!each_state || (!each_state->empty() && each_state->size() != each_group->size()))
    return expected->wrong("not as many baselines as groups");
  comparison to;
  agent_baselines state;
  double largest = 0;
  for (std::size_t i = 0; i < each_group->size(); ++i) {
    const auto group = read_group((*each_group)[i]);
    if (!group)
      return tl::unexpected(group.error());
    const auto header = parse<wire::GroupHeader>(group->header);
    if (!header)
      return tl::unexpected(header.error());
    const auto scores = score_group(**header, config, state);
    if (!scores)
      return tl::unexpected(scores.error());
    compare(to, *group, *scores, scale_of(*group, config), (*each_expected)[i], (*each_weight)[i]);
    largest = std::max(largest, group->scale);
    if (!each_state->empty())
      compare_state(to, state, largest, (*each_state)[i]);
    // From group to group the state is its bytes.
    auto again = decode_baselines(encode_baselines(state));
    if (!again)
      return tl::unexpected(std::move(again).error());
    state = std::move(*again);
  }
  return to.difference();
}

} // namespace

case_outcome run_scoring_case(const json::value &test) {
  const auto config = read_config(test);
  if (!config)
    return case_outcome::fail(config.error().message);
  const auto difference = run(test, *config);
  if (!difference)
    return case_outcome::fail(difference.error().message);
  return difference->empty() ? case_outcome::pass() : case_outcome::fail(*difference);
}

} // namespace millrace
