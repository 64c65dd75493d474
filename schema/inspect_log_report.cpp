// SPDX-License-Identifier: Apache-2.0
#include "schema/inspect_log.hpp"

#include "runtime/text_table.hpp"
#include "runtime/utf8.hpp"

namespace millrace {

namespace {

using row = std::vector<std::string>;

std::string_view name_of(step_summary::mark mark) {
  switch (mark) {
  case step_summary::mark::committed:
    return "committed";
  case step_summary::mark::trained:
    return "trained";
  case step_summary::mark::durable:
    return "durable";
  }
  return "";
}

/// The last step that got this far; 0: none.
std::uint64_t last_with(const log_summary &summary, step_summary::mark mark) {
  std::uint64_t out = 0;
  for (const auto &[number, step] : summary.steps)
    if (step.reached >= mark)
      out = number;
  return out;
}

std::string line_of(const log_open &start) {
  return fmt::format("start {}: millrace {}, config {}, {} ranks", start.epoch, start.program,
                     start.config_digest, start.ranks);
}

std::string line_of(const log_generation &job) {
  return fmt::format("generation {} of the trainer, from step {}", job.generation, job.next);
}

std::string line_of(const log_rolled_back &lost) {
  return fmt::format("steps {} to {} rolled back, {}", lost.first, lost.last,
                     lost.trained >= lost.first
                         ? fmt::format("{} to {} had been trained", lost.first, lost.trained)
                         : "none had been trained");
}

std::string event_lines(const log_summary &summary) {
  std::string out;
  for (const auto &event : summary.events)
    out += fmt::format("after step {:<6} {}\n", event.committed,
                       std::visit([](const auto &what) { return line_of(what); }, event.what));
  return out;
}

std::string step_table(const log_summary &summary) {
  if (summary.steps.empty())
    return "no step\n";
  std::vector<row> table{{"step", "reached", "groups", "traces", "samples", "tokens", "padding",
                          "micro batches", "dummies", "wire bytes", "digest"}};
  for (const auto &[number, step] : summary.steps)
    table.push_back({std::to_string(number), std::string(name_of(step.reached)),
                     grouped(step.groups), grouped(step.traces), grouped(step.samples),
                     grouped(step.tokens), grouped(step.padding), grouped(step.micro_batches),
                     grouped(step.dummies), grouped(step.wire_bytes), step.digest.hex()});
  return text_table(table);
}

std::string state_table(const log_summary &summary) {
  const auto all = summary.states();
  if (all.groups == 0)
    return "no group\n";
  std::vector<row> table{{"state", "episodes", "outside a step", "samples", "tokens"}};
  for (std::size_t i = 0; i < episode_state_count; ++i)
    if (all.episodes[i] > 0 || all.samples[i] > 0)
      table.push_back({std::string(millrace::name_of(static_cast<episode_state>(i))),
                       grouped(all.episodes[i]), grouped(summary.outside.episodes[i]),
                       grouped(all.samples[i]), grouped(all.tokens[i])});
  return text_table(table);
}

std::string damage_lines(const log_summary &summary) {
  std::string out;
  if (summary.torn)
    out += fmt::format("torn tail: {} bytes at offset {} are no whole record: one that is being "
                       "written, or that the next start cuts off\n",
                       summary.torn->bytes, summary.torn->offset);
  if (!summary.damage.empty())
    out += fmt::format("damage: {}\n", summary.damage);
  return out;
}

json::tree states_json(const std::array<std::uint64_t, episode_state_count> &counts) {
  json::tree out;
  for (std::size_t i = 0; i < episode_state_count; ++i)
    out[std::string(millrace::name_of(static_cast<episode_state>(i)))] = counts[i];
  return out;
}

json::tree samples_json(const state_counts &counts) {
  json::tree out;
  for (std::size_t i = 0; i < episode_state_count; ++i)
    out[std::string(millrace::name_of(static_cast<episode_state>(i)))] = {
        {"samples", counts.samples[i]}, {"tokens", counts.tokens[i]}};
  return out;
}

json::tree json_of(std::uint64_t number, const step_summary &step) {
  json::tree out;
  out["step"] = number;
  out["reached"] = name_of(step.reached);
  out["groups"] = step.groups;
  out["traces"] = step.traces;
  out["samples"] = step.samples;
  out["tokens"] = step.tokens;
  out["padding"] = step.padding;
  out["micro_batches"] = step.micro_batches;
  out["dummies"] = step.dummies;
  out["wire_bytes"] = step.wire_bytes;
  out["digest"] = step.digest.hex();
  out["totals"] = nullptr;
  if (step.totals)
    out["totals"] = {
        {"rl", step.totals->rl}, {"ce", step.totals->ce}, {"ref_kl", step.totals->ref_kl}};
  return out;
}

json::tree json_of(const log_event &event) {
  json::tree out;
  if (const auto *start = std::get_if<log_open>(&event.what))
    out = {{"event", "open"},
           {"epoch", start->epoch},
           {"program", start->program},
           {"config_digest", start->config_digest}};
  else if (const auto *job = std::get_if<log_generation>(&event.what))
    out = {{"event", "generation"}, {"generation", job->generation}, {"next", job->next}};
  else if (const auto *lost = std::get_if<log_rolled_back>(&event.what))
    out = {{"event", "rolled_back"},
           {"first", lost->first},
           {"last", lost->last},
           {"trained", lost->trained}};
  out["after_step"] = event.committed;
  return out;
}

} // namespace

std::string text_of(const log_summary &summary) {
  const auto *start = summary.last_start();
  const auto all = summary.states();
  auto out = fmt::format("{}: a planner's log, {}\n", summary.path, byte_count(summary.bytes));
  if (start != nullptr)
    out +=
        fmt::format("run       {}, {} ranks\nsource    {}\nfolder    {}\n", to_one_line(start->run),
                    start->ranks, to_one_line(start->source), start->folder.hex());
  std::string counts;
  for (std::size_t i = 0; i < summary.records.size(); ++i)
    if (summary.records[i] > 0)
      counts += fmt::format("{}{} {}", counts.empty() ? "" : ", ", grouped(summary.records[i]),
                            log_record_name(i));
  out += fmt::format("records   {}\n", counts.empty() ? "none" : counts);
  out += fmt::format("steps     {} committed, {} trained, {} durable\n",
                     last_with(summary, step_summary::mark::committed),
                     last_with(summary, step_summary::mark::trained),
                     last_with(summary, step_summary::mark::durable));
  out += fmt::format("groups    {}, {} of them outside a step\n\n", grouped(all.groups),
                     grouped(summary.outside.groups));
  out += event_lines(summary) + '\n' + step_table(summary) + '\n' + state_table(summary);
  if (const auto lines = damage_lines(summary); !lines.empty())
    out += '\n' + lines;
  return out;
}

json::tree json_of(const log_summary &summary) {
  const auto *start = summary.last_start();
  const auto all = summary.states();
  json::tree out;
  out["path"] = summary.path;
  out["bytes"] = summary.bytes;
  out["run"] = start == nullptr ? json::tree() : json::tree(start->run);
  out["folder"] = start == nullptr ? json::tree() : json::tree(start->folder.hex());
  out["source"] = start == nullptr ? json::tree() : json::tree(start->source);
  out["ranks"] = start == nullptr ? json::tree() : json::tree(start->ranks);
  for (std::size_t i = 0; i < summary.records.size(); ++i)
    out["records"][std::string(log_record_name(i))] = summary.records[i];
  out["committed"] = last_with(summary, step_summary::mark::committed);
  out["trained"] = last_with(summary, step_summary::mark::trained);
  out["durable"] = last_with(summary, step_summary::mark::durable);
  out["events"] = json::tree::array();
  for (const auto &event : summary.events)
    out["events"].push_back(json_of(event));
  out["steps"] = json::tree::array();
  for (const auto &[number, step] : summary.steps)
    out["steps"].push_back(json_of(number, step));
  out["groups"] = {{"in_steps", all.groups - summary.outside.groups - summary.lost.groups},
                   {"outside", summary.outside.groups},
                   {"rolled_back", summary.lost.groups}};
  out["ledger"] = states_json(all.episodes);
  out["ledger_samples"] = samples_json(all);
  out["cut_tokens"] = all.cut_tokens;
  out["outside"] = states_json(summary.outside.episodes);
  out["damaged"] = !summary.damage.empty();
  out["damage"] = summary.damage.empty() ? json::tree() : json::tree(summary.damage);
  out["torn_tail"] = nullptr;
  if (summary.torn)
    out["torn_tail"] = {{"offset", summary.torn->offset}, {"bytes", summary.torn->bytes}};
  return out;
}

} // namespace millrace
