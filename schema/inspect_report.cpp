// SPDX-License-Identifier: Apache-2.0
#include "schema/inspect.hpp"

#include "runtime/text_table.hpp"

namespace millrace {

namespace {

using row = std::vector<std::string>;

/// The sum over environments; rewards and uniform groups are left out.
environment_summary total_of(const recording_summary &summary) {
  environment_summary all;
  for (const auto &[name, env] : summary.environments) {
    all.groups += env.groups;
    all.complete += env.complete;
    all.ok += env.ok;
    all.errored += env.errored;
    all.cancelled += env.cancelled;
    all.rejected += env.rejected;
    all.eval += env.eval;
    all.traces += env.traces;
    all.trainable += env.trainable;
  }
  return all;
}

std::string short_number(double value) { return fmt::format("{:.3g}", value); }

std::string rewards_text(const number_spread &rewards) {
  if (rewards.count == 0)
    return "-";
  return short_number(rewards.low) + " / " + short_number(rewards.mean()) + " / " +
         short_number(rewards.high);
}

row environment_row(const std::string &name, const environment_summary &env) {
  return {name,
          grouped(env.groups),
          grouped(env.complete),
          grouped(env.ok),
          grouped(env.errored),
          grouped(env.cancelled),
          grouped(env.rejected),
          grouped(env.traces),
          grouped(env.nodes),
          grouped(env.tokens),
          grouped(env.trainable),
          rewards_text(env.rewards),
          grouped(env.uniform),
          grouped(env.images),
          grouped(env.expert_tokens)};
}

std::string damage_lines(const recording_summary &summary) {
  std::string out;
  if (summary.torn)
    out += fmt::format("torn tail: {} bytes at offset {} are the beginning of a record\n",
                       summary.torn->bytes, summary.torn->offset);
  if (!summary.finished)
    out += "not finished: the closing index is missing\n";
  for (const auto &conflict : summary.counts.conflicts)
    out += fmt::format("conflict: {}\n", conflict);
  for (const auto &message : summary.refused)
    out += fmt::format("will be refused: {}\n", message);
  if (summary.refused_count > summary.refused.size())
    out +=
        fmt::format("will be refused: {} more\n", summary.refused_count - summary.refused.size());
  for (const auto &place : summary.damage)
    out += fmt::format("damage: {}\n", place.text());
  if (summary.damage_count > summary.damage.size())
    out += fmt::format("damage: {} more places\n", summary.damage_count - summary.damage.size());
  return out;
}

json::tree json_of(const environment_summary &env) {
  json::tree out;
  out["groups"] = env.groups;
  out["complete_groups"] = env.complete;
  out["uniform_groups"] = env.uniform;
  out["episodes"] = {{"ok", env.ok},
                     {"errored", env.errored},
                     {"cancelled", env.cancelled},
                     {"rejected", env.rejected}};
  out["eval_episodes"] = env.eval;
  out["traces"] = env.traces;
  out["nodes"] = env.nodes;
  out["tokens"] = env.tokens;
  out["trainable_tokens"] = env.trainable;
  out["images"] = env.images;
  out["expert_tokens"] = env.expert_tokens;
  out["rewards"] = {{"count", env.rewards.count},
                    {"min", env.rewards.low},
                    {"mean", env.rewards.mean()},
                    {"max", env.rewards.high}};
  return out;
}

} // namespace

std::string text_of(const recording_summary &summary) {
  const auto all = total_of(summary);
  const auto &counts = summary.counts;
  auto out = fmt::format("{}: recording of {}, {}, {}\n", summary.path,
                         summary.source.empty() ? "an unnamed source" : summary.source,
                         byte_count(summary.bytes), summary.finished ? "finished" : "not finished");
  std::string kinds;
  for (std::size_t i = 1; i < summary.records.size(); ++i)
    if (summary.records[i] > 0)
      kinds += fmt::format("{}{} {}", kinds.empty() ? "" : ", ", grouped(summary.records[i]),
                           to_string(static_cast<record_kind>(i)));
  out += fmt::format("records   {}\n", kinds);
  out += fmt::format("groups    {}, {} complete\n", grouped(all.groups), grouped(all.complete));
  out += fmt::format("episodes  {}: {} ok, {} errored, {} cancelled, {} rejected", counts.episodes,
                     all.ok, all.errored, all.cancelled, all.rejected);
  if (all.eval > 0)
    out += fmt::format("; {} for evaluation", all.eval);
  if (counts.unfinished > 0)
    out += fmt::format("; {} more without an end", counts.unfinished);
  if (counts.repeats > 0)
    out += fmt::format("; {} repeated records", counts.repeats);
  out += fmt::format("\ntraces    {}, {} nodes, {} tokens, {} trainable\n\n", grouped(all.traces),
                     grouped(counts.nodes), grouped(counts.tokens), grouped(all.trainable));
  std::vector<row> table{{"environment", "groups", "complete", "ok", "errored", "cancelled",
                          "rejected", "traces", "nodes", "tokens", "trainable",
                          "reward min / mean / max", "uniform", "images", "expert tokens"}};
  for (const auto &[name, env] : summary.environments)
    table.push_back(environment_row(name, env));
  out += text_table(table);
  if (const auto lines = damage_lines(summary); !lines.empty())
    out += '\n' + lines;
  return out;
}

json::tree json_of(const recording_summary &summary) {
  const auto all = total_of(summary);
  json::tree out;
  out["path"] = summary.path;
  out["source"] = summary.source;
  out["bytes"] = summary.bytes;
  out["finished"] = summary.finished;
  for (std::size_t i = 1; i < summary.records.size(); ++i)
    out["records"][std::string(to_string(static_cast<record_kind>(i)))] = summary.records[i];
  out["groups"] = all.groups;
  out["complete_groups"] = all.complete;
  out["episodes"] = summary.counts.episodes;
  out["episodes_by_status"] = {{"ok", all.ok},
                               {"errored", all.errored},
                               {"cancelled", all.cancelled},
                               {"rejected", all.rejected}};
  out["unfinished_episodes"] = summary.counts.unfinished;
  out["repeats"] = summary.counts.repeats;
  out["traces"] = all.traces;
  out["nodes"] = summary.counts.nodes;
  out["tokens"] = summary.counts.tokens;
  out["trainable_tokens"] = all.trainable;
  out["environments"] = json::tree::object();
  for (const auto &[name, env] : summary.environments)
    out["environments"][name] = json_of(env);
  out["conflicts"] = summary.counts.conflicts;
  out["refused"] = {{"count", summary.refused_count}, {"first", summary.refused}};
  out["damaged"] = summary.damaged();
  out["damage"] = json::tree::array();
  for (const auto &place : summary.damage)
    out["damage"].push_back(
        {{"offset", place.offset}, {"bytes", place.bytes}, {"reason", place.reason}});
  out["damage_count"] = summary.damage_count;
  out["bytes_skipped"] = summary.bytes_skipped;
  if (summary.torn)
    out["torn_tail"] = {{"offset", summary.torn->offset}, {"bytes", summary.torn->bytes}};
  else
    out["torn_tail"] = nullptr;
  return out;
}

} // namespace millrace
