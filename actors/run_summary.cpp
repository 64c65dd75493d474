// SPDX-License-Identifier: Apache-2.0
#include "actors/run_summary.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <ostream>

namespace millrace {

namespace {

constexpr std::size_t most_differences = 5;

struct named_stage {
  std::string_view name;
  const stage_meter &meter;
};

std::array<named_stage, 6> stages_of(const run_counters &counters) {
  const auto &s = counters.stages;
  return {{{"decode", s.decode},
           {"score", s.score},
           {"pack", s.pack},
           {"trainer_decode", s.trainer_decode},
           {"tensors", s.tensors},
           {"digest", s.digest}}};
}

template <class F> std::uint64_t sum_over(const std::vector<step_report> &steps, F &&field) {
  std::uint64_t sum = 0;
  for (const auto &step : steps)
    sum += field(step);
  return sum;
}

double in_megabytes(std::uint64_t bytes) { return static_cast<double>(bytes) / 1e6; }

void print_stages(const run_summary &summary, std::ostream &out) {
  out << fmt::format("\n{:<16}{:>10}{:>12}{:>12}\n", "stage", "seconds", "MB", "MB/s");
  for (const auto &[name, meter] : stages_of(*summary.counters)) {
    const auto seconds = meter.seconds();
    const auto megabytes = in_megabytes(meter.bytes);
    out << fmt::format("{:<16}{:>10.3f}{:>12.1f}{:>12.0f}\n", name, seconds, megabytes,
                       seconds > 0 ? megabytes / seconds : 0.0);
  }
}

void print_ledger(const run_summary &summary, std::ostream &out) {
  const auto &entries = summary.entries;
  out << fmt::format("\n{:<16}{:>10}{:>12}{:>16}\n", "ledger", "episodes", "samples", "tokens");
  for (std::size_t i = 0; i < episode_state_count; ++i) {
    const auto &row = entries.samples[i];
    if (entries.episodes[i] == 0 && row.samples == 0)
      continue;
    out << fmt::format("{:<16}{:>10}{:>12}{:>16}\n", name_of(static_cast<episode_state>(i)),
                       entries.episodes[i], row.samples, row.tokens);
  }
  out << fmt::format("{:<16}{:>10}", "all", entries.total());
  out << fmt::format("   of {} in the source: {}\n", summary.source_episodes(),
                     summary.balanced() ? "balanced" : "DOES NOT BALANCE");
  for (const auto &[group, counted, expected] : summary.differences)
    out << fmt::format("group {} has {} episodes in the ledger, and {} in the source\n", group,
                       counted, expected);
  if (entries.cut_tokens > 0)
    out << fmt::format("{} tokens were cut off at seq_len\n", entries.cut_tokens);
  if (entries.gibberish + entries.repetition > 0)
    out << fmt::format("filters found gibberish in {} traces, repetition in {}\n",
                       entries.gibberish, entries.repetition);
  if (summary.duplicates + summary.late + summary.unnamed_records > 0)
    out << fmt::format(
        "beside them: {} duplicates, {} late, {} records ({} bytes) that name no episode\n",
        summary.duplicates, summary.late, summary.unnamed_records, summary.unnamed_bytes);
  if (summary.too_late > 0)
    out << fmt::format("{} episodes came after the deadline of their group\n", summary.too_late);
  if (!summary.quarantine.empty())
    out << fmt::format("refused episodes are listed in {}\n", summary.quarantine);
}

void print_damage(const run_summary &summary, std::ostream &out) {
  for (const auto &damage : summary.damage)
    out << fmt::format("damage in {}: {}\n", summary.source, damage.text());
  if (summary.torn)
    out << fmt::format("{} ends in the middle of a record: its writer did not finish\n",
                       summary.source);
  if (!summary.damage.empty() && !summary.damage_allowed)
    out << "some of the recording could not be read: pass --allow-damage to accept that\n";
}

json::tree json_of(const ledger &entries) {
  json::tree out = json::tree::object();
  for (std::size_t i = 0; i < episode_state_count; ++i)
    out[std::string(name_of(static_cast<episode_state>(i)))] = entries.episodes[i];
  return out;
}

/// Episodes by staleness.
json::tree json_of(const std::vector<staleness_count> &counts) {
  json::tree out = json::tree::object();
  for (const auto &one : counts)
    out[std::to_string(one.staleness)] = one.episodes;
  return out;
}

json::tree json_of(const sample_lengths &lengths) {
  json::tree out;
  out["samples"] = lengths.samples;
  out["tokens"] = lengths.tokens;
  out["mean"] = lengths.mean();
  out["longest"] = lengths.longest;
  return out;
}

/// Of all steps.
std::vector<staleness_count> staleness_of(const run_summary &summary) {
  std::map<std::uint64_t, std::uint64_t> sums;
  for (const auto &step : summary.steps)
    for (const auto &one : step.staleness)
      sums[one.staleness] += one.episodes;
  std::vector<staleness_count> out;
  for (const auto &[staleness, episodes] : sums)
    out.push_back({staleness, episodes});
  return out;
}

sample_lengths kept_lengths_of(const run_summary &summary) {
  sample_lengths out;
  for (const auto &step : summary.steps)
    out.add(step.kept_lengths);
  return out;
}

/// Also those that were too old for a step that was never cut.
sample_lengths stale_lengths_of(const run_summary &summary) {
  const auto &row = summary.entries.samples[static_cast<std::size_t>(episode_state::stale)];
  return {row.samples, row.tokens, summary.entries.longest_stale};
}

/// "0: 120, 1: 8"
std::string text_of(const std::vector<staleness_count> &counts) {
  std::string out;
  for (const auto &one : counts)
    out += fmt::format("{}{}: {}", out.empty() ? "" : ", ", one.staleness, one.episodes);
  return out;
}

std::string text_of(const sample_lengths &lengths) {
  return fmt::format("{} samples of {:.0f} tokens on average, at most {}", lengths.samples,
                     lengths.mean(), lengths.longest);
}

/// Nothing where all is of the newest version.
bool has_ages(const std::vector<staleness_count> &counts, const sample_lengths &stale) {
  return stale.samples > 0 || (!counts.empty() && counts.back().staleness > 0);
}

void print_staleness(const run_summary &summary, std::ostream &out) {
  const auto counts = staleness_of(summary);
  const auto stale = stale_lengths_of(summary);
  if (!has_ages(counts, stale))
    return;
  out << fmt::format("\nepisodes trained, by staleness: {}\n", text_of(counts));
  if (stale.samples > 0)
    out << fmt::format("too old: {}; kept: {}\n", text_of(stale),
                       text_of(kept_lengths_of(summary)));
}

json::tree json_of(const step_report &step) {
  json::tree out;
  out["step"] = step.step;
  out["groups"] = step.groups;
  out["traces"] = step.traces;
  out["samples"] = step.samples;
  out["tokens"] = step.tokens;
  out["padding"] = step.padding;
  out["micro_batches"] = step.micro_batches;
  out["dummies"] = step.dummies;
  out["wire_bytes"] = step.wire_bytes;
  out["digest"] = step.digest.hex();
  out["staleness"] = json_of(step.staleness);
  out["kept_lengths"] = json_of(step.kept_lengths);
  out["stale_lengths"] = json_of(step.stale_lengths);
  out["loss_tokens"] = {
      {"rl", step.totals.rl}, {"ce", step.totals.ce}, {"ref_kl", step.totals.ref_kl}};
  return out;
}

} // namespace

bool run_summary::balanced() const noexcept {
  return entries.total() + too_late == source_episodes() && differences.empty();
}

std::uint64_t count_too_late(const recording_counts &source, const ledger &entries) {
  std::map<group_key, std::uint64_t> listed(entries.overdue.begin(), entries.overdue.end());
  std::uint64_t sum = 0;
  for (const auto &group : source.groups)
    if (const auto found = listed.find(group.key); found != listed.end())
      sum += group.episodes() - std::min<std::uint64_t>(found->second, group.episodes());
  return sum;
}

bool run_summary::ok() const noexcept {
  return balanced() && interrupted.empty() && (damage_allowed || damage.empty());
}

std::vector<group_difference> differences_of(const run_summary &summary, bool all_received,
                                             std::uint64_t surplus) {
  // An episode without an end, or that does not parse, stands in no group of the index.
  const bool is_exact =
      all_received && surplus == 0 && summary.unparsed == 0 && summary.expected.unfinished == 0;
  if (!is_exact && summary.entries.total() + summary.too_late == summary.source_episodes())
    return {};
  return differing_groups(summary.entries, summary.expected, most_differences);
}

std::string line_of(const step_report &step) {
  const auto all = step.tokens + step.padding;
  auto out = fmt::format(
      "step {}: {} groups, {} samples, {} tokens in {} micro batches ({} filler), "
      "{:.1f}% padding, loss tokens rl {} ce {} ref_kl {}",
      step.step, step.groups, step.samples, step.tokens, step.micro_batches, step.dummies,
      all == 0 ? 0.0 : 100.0 * static_cast<double>(step.padding) / static_cast<double>(all),
      step.totals.rl, step.totals.ce, step.totals.ref_kl);
  if (has_ages(step.staleness, step.stale_lengths))
    out += fmt::format(", episodes by staleness {}", text_of(step.staleness));
  if (step.stale_lengths.samples > 0)
    out += fmt::format(", too old: {} (kept: {:.0f} on average, at most {})",
                       text_of(step.stale_lengths), step.kept_lengths.mean(),
                       step.kept_lengths.longest);
  return out;
}

void print(const run_summary &summary, std::ostream &out) {
  print_stages(summary, out);
  print_ledger(summary, out);
  print_staleness(summary, out);
  print_damage(summary, out);
  const auto tokens = sum_over(summary.steps, [](const auto &s) { return s.tokens; });
  out << fmt::format(
      "\n{} steps on {} ranks, {} sample tokens, {:.1f} MB of micro batches, {:.2f} s, "
      "{:.0f} MB peak memory\n",
      summary.steps.size(), summary.ranks, tokens, in_megabytes(summary.counters->wire_bytes),
      summary.seconds, in_megabytes(summary.peak_rss_bytes));
  if (!summary.interrupted.empty())
    out << summary.interrupted << '\n';
  out << "grid_hash " << summary.grid_hash.hex() << '\n';
}

json::tree to_json(const run_summary &summary) {
  const auto &counters = *summary.counters;
  json::tree out;
  out["run_id"] = summary.id;
  out["source"] = summary.source;
  out["episodes"] = summary.source_episodes();
  out["groups"] = summary.expected.groups.size();
  out["nodes"] = summary.expected.nodes;
  out["tokens"] = summary.expected.tokens;
  out["samples"] = sum_over(summary.steps, [](const auto &s) { return s.samples; });
  out["sample_tokens"] = sum_over(summary.steps, [](const auto &s) { return s.tokens; });
  out["micro_batches"] = sum_over(summary.steps, [](const auto &s) { return s.micro_batches; });
  out["steps"] = summary.steps.size();
  out["ranks"] = summary.ranks;
  out["seconds"] = summary.seconds;
  out["wire_bytes"] = counters.wire_bytes.load();
  out["held_peak_bytes"] = counters.memory->held_peak.load();
  out["peak_rss_bytes"] = summary.peak_rss_bytes;
  out["ledger"] = json_of(summary.entries);
  out["balanced"] = summary.balanced();
  out["differences"] = json::tree::array();
  for (const auto &[group, counted, expected] : summary.differences)
    out["differences"].push_back({{"group", group}, {"counted", counted}, {"expected", expected}});
  json::tree samples = json::tree::object();
  for (std::size_t i = 0; i < episode_state_count; ++i)
    if (const auto &row = summary.entries.samples[i]; row.samples > 0)
      samples[std::string(name_of(static_cast<episode_state>(i)))] = {{"samples", row.samples},
                                                                      {"tokens", row.tokens}};
  out["ledger_samples"] = samples;
  out["cut_tokens"] = summary.entries.cut_tokens;
  out["filters"] = {{"gibberish", summary.entries.gibberish},
                    {"repetition", summary.entries.repetition}};
  out["duplicates"] = summary.duplicates;
  out["late"] = summary.late;
  out["too_late"] = summary.too_late;
  out["staleness"] = json_of(staleness_of(summary));
  out["kept_lengths"] = json_of(kept_lengths_of(summary));
  out["stale_lengths"] = json_of(stale_lengths_of(summary));
  out["unnamed_records"] = summary.unnamed_records;
  out["unnamed_bytes"] = summary.unnamed_bytes;
  out["damage"] = json::tree::array();
  for (const auto &damage : summary.damage)
    out["damage"].push_back(damage.text());
  out["torn"] = summary.torn;
  out["grid_hash"] = summary.grid_hash.hex();
  for (const auto &[name, meter] : stages_of(counters))
    out["stages"][std::string(name)] = {{"seconds", meter.seconds()},
                                        {"bytes", meter.bytes.load()}};
  out["long_turns"] = {
      {"count", summary.turns.long_turns},
      {"longest_seconds", std::chrono::duration<double>(summary.turns.longest).count()},
      {"longest_actor", summary.turns.longest_actor}};
  out["step_reports"] = json::tree::array();
  for (const auto &step : summary.steps)
    out["step_reports"].push_back(json_of(step));
  return out;
}

} // namespace millrace
