// SPDX-License-Identifier: Apache-2.0
#include "actors/node/run_report.hpp"

#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "runtime/json.hpp"

namespace millrace {

namespace {

using number = std::atomic<std::uint64_t>;

template <class Owner> struct named {
  std::string_view name;
  number Owner::*field;
};

constexpr std::array counts{named<run_counters>{"mapped", &run_counters::mapped},
                            named<run_counters>{"episodes", &run_counters::episodes},
                            named<run_counters>{"nodes", &run_counters::nodes},
                            named<run_counters>{"tokens", &run_counters::tokens},
                            named<run_counters>{"groups", &run_counters::groups},
                            named<run_counters>{"rejected", &run_counters::rejected},
                            named<run_counters>{"unparsed", &run_counters::unparsed},
                            named<run_counters>{"surplus", &run_counters::surplus},
                            named<run_counters>{"unnamed_records", &run_counters::unnamed_records},
                            named<run_counters>{"unnamed_bytes", &run_counters::unnamed_bytes},
                            named<run_counters>{"duplicates", &run_counters::duplicates},
                            named<run_counters>{"late", &run_counters::late},
                            named<run_counters>{"groups_open", &run_counters::groups_open},
                            named<run_counters>{"overdue", &run_counters::overdue},
                            named<run_counters>{"repeats", &run_counters::repeats},
                            named<run_counters>{"refused_answers", &run_counters::refused_answers},
                            named<run_counters>{"tombstones", &run_counters::tombstones},
                            named<run_counters>{"groups_scored", &run_counters::groups_scored},
                            named<run_counters>{"steps_cut", &run_counters::steps_cut},
                            named<run_counters>{"steps_trained", &run_counters::steps_trained},
                            named<run_counters>{"backlog_traces", &run_counters::backlog_traces},
                            named<run_counters>{"version", &run_counters::version},
                            named<run_counters>{"next_step", &run_counters::next_step},
                            named<run_counters>{"backlog_steps", &run_counters::backlog_steps},
                            named<run_counters>{"wire_bytes", &run_counters::wire_bytes}};
static_assert(sizeof(run_counters) == sizeof(stage_meters) + sizeof(run_counters::memory) +
                                          sizeof(run_counters::waits) +
                                          sizeof(run_counters::pinned) +
                                          counts.size() * sizeof(number),
              "a counter is missing in this list, or is no longer there");

/// `held` is not among them: at the end of a run it says nothing.
constexpr std::array memory_counts{named<memory_meter>{"held_peak", &memory_meter::held_peak},
                                   named<memory_meter>{"copied", &memory_meter::copied}};

constexpr std::array work{named<stage_meter>{"nanoseconds", &stage_meter::nanoseconds},
                          named<stage_meter>{"bytes", &stage_meter::bytes}};

constexpr std::array<std::pair<std::string_view, stage_meter stage_meters::*>, 6> stages{
    {{"decode", &stage_meters::decode},
     {"score", &stage_meters::score},
     {"pack", &stage_meters::pack},
     {"trainer_decode", &stage_meters::trainer_decode},
     {"tensors", &stage_meters::tensors},
     {"digest", &stage_meters::digest}}};
static_assert(sizeof(stage_meters) == stages.size() * sizeof(stage_meter),
              "a stage is missing in this list, or is no longer there");

// ---- out

template <class Owner, std::size_t N>
json::tree written(const Owner &from, const std::array<named<Owner>, N> &fields) {
  json::tree out;
  for (const auto &[name, field] : fields)
    out[std::string(name)] = (from.*field).load();
  return out;
}

json::tree written(const stage_meters &from) {
  json::tree out;
  for (const auto &[name, stage] : stages)
    out[std::string(name)] = written(from.*stage, work);
  return out;
}

json::tree written(const group_count &from) {
  json::tree out;
  out["run"] = from.key.run;
  out["env"] = from.key.env;
  out["task"] = from.key.task;
  out["group"] = from.key.group;
  out["size"] = from.size;
  out["ok"] = from.ok;
  out["errored"] = from.errored;
  out["cancelled"] = from.cancelled;
  out["rejected"] = from.rejected;
  out["nodes"] = from.nodes;
  out["tokens"] = from.tokens;
  return out;
}

json::tree written(const recording_counts &from) {
  json::tree out;
  out["episodes"] = from.episodes;
  out["nodes"] = from.nodes;
  out["tokens"] = from.tokens;
  out["unfinished"] = from.unfinished;
  out["repeats"] = from.repeats;
  out["groups"] = json::tree::array();
  for (const auto &group : from.groups)
    out["groups"].push_back(written(group));
  out["conflicts"] = from.conflicts;
  return out;
}

json::tree written(const source_report &from) {
  json::tree out;
  out["reader"] = from.reader;
  out["counts"] = from.counts ? written(*from.counts) : json::tree();
  out["damage"] = json::tree::array();
  for (const auto &damage : from.damage)
    out["damage"].push_back(
        {{"offset", damage.offset}, {"bytes", damage.bytes}, {"reason", damage.reason}});
  out["torn"] = from.torn;
  return out;
}

// ---- in

/// Reads fields and keeps the first failure: what reads a report is one expression a field.
class report_reader {
public:
  bool ok() const noexcept { return !failure_; }
  error failure() && { return std::move(*failure_); }

  template <class T> T get(const json::value &from, std::string_view key) {
    return ok() ? value_or_failure(from.get<T>(key)) : T{};
  }

  std::uint32_t get32(const json::value &from, std::string_view key) {
    const auto value = get<std::uint64_t>(from, key);
    if (value > UINT32_MAX)
      failure_ = from.wrong("{} of {} is over {}", key, value, UINT32_MAX).value();
    return ok() ? static_cast<std::uint32_t>(value) : 0;
  }

  /// The elements of an array field, each read by `each`.
  template <class T, class F>
  std::vector<T> list(const json::value &from, std::string_view key, F &&each) {
    std::vector<T> out;
    if (const auto field = object(from, key))
      for (const auto &item : value_or_failure(field->items()))
        if (out.push_back(each(item)); !ok())
          return {};
    return out;
  }

  /// A field of any type.
  std::optional<json::value> object(const json::value &from, std::string_view key) {
    if (!ok())
      return std::nullopt;
    auto found = from.get<json::value>(key);
    if (found)
      return *found;
    failure_ = std::move(found).error();
    return std::nullopt;
  }

  template <class Owner, std::size_t N>
  void fill(Owner &into, const std::array<named<Owner>, N> &fields, const json::value &from,
            std::string_view key) {
    if (const auto found = object(from, key))
      for (const auto &[name, field] : fields)
        into.*field = get<std::uint64_t>(*found, name);
  }

  template <class T> T value_or_failure(result<T> found) {
    if (found)
      return std::move(*found);
    failure_ = std::move(found).error();
    return {};
  }

private:
  std::optional<error> failure_;
};

group_count group_from(report_reader &in, const json::value &from) {
  group_count out;
  out.key = {in.get<std::string>(from, "run"), in.get<std::string>(from, "env"),
             in.get<std::string>(from, "task"), in.get<std::string>(from, "group")};
  out.size = in.get32(from, "size");
  out.ok = in.get32(from, "ok");
  out.errored = in.get32(from, "errored");
  out.cancelled = in.get32(from, "cancelled");
  out.rejected = in.get32(from, "rejected");
  out.nodes = in.get<std::uint64_t>(from, "nodes");
  out.tokens = in.get<std::uint64_t>(from, "tokens");
  return out;
}

std::shared_ptr<const recording_counts> counts_from(report_reader &in, const json::value &source) {
  const auto from = in.object(source, "counts");
  if (!from || from->is_null())
    return nullptr;
  auto out = std::make_shared<recording_counts>();
  out->episodes = in.get<std::uint64_t>(*from, "episodes");
  out->nodes = in.get<std::uint64_t>(*from, "nodes");
  out->tokens = in.get<std::uint64_t>(*from, "tokens");
  out->unfinished = in.get<std::uint64_t>(*from, "unfinished");
  out->repeats = in.get<std::uint64_t>(*from, "repeats");
  out->groups = in.list<group_count>(
      *from, "groups", [&in](const json::value &group) { return group_from(in, group); });
  out->conflicts = in.list<std::string>(*from, "conflicts", [&in](const json::value &text) {
    return in.value_or_failure(text.as<std::string>());
  });
  return out;
}

source_report source_from(report_reader &in, const json::value &from) {
  return {in.get32(from, "reader"), counts_from(in, from),
          in.list<recording_damage>(from, "damage",
                                    [&in](const json::value &damage) {
                                      return recording_damage{
                                          in.get<std::uint64_t>(damage, "offset"),
                                          in.get<std::uint64_t>(damage, "bytes"),
                                          in.get<std::string>(damage, "reason")};
                                    }),
          in.get<bool>(from, "torn")};
}

turn_meter::summary turns_from(report_reader &in, const json::value &report) {
  turn_meter::summary out;
  if (const auto from = in.object(report, "turns")) {
    out.long_turns = in.get<std::uint64_t>(*from, "long_turns");
    out.longest = std::chrono::nanoseconds(in.get<std::int64_t>(*from, "longest_nanoseconds"));
    out.longest_actor = in.get<std::string>(*from, "longest_actor");
  }
  return out;
}

void fill_stages(report_reader &in, stage_meters &into, const json::value &report) {
  if (const auto from = in.object(report, "stages"))
    for (const auto &[name, stage] : stages)
      in.fill(into.*stage, work, *from, name);
}

template <class Owner, std::size_t N>
void add_fields(Owner &sum, const Owner &one, const std::array<named<Owner>, N> &fields) {
  for (const auto &[name, field] : fields)
    sum.*field += (one.*field).load();
}

} // namespace

json::tree to_json(const run_report &report) {
  json::tree out;
  out["process"] = report.process;
  out["counters"] = written(*report.counters, counts);
  out["stages"] = written(report.counters->stages);
  out["memory"] = written(*report.counters->memory, memory_counts);
  auto &turns = out["turns"];
  turns["long_turns"] = report.turns.long_turns;
  turns["longest_nanoseconds"] =
      std::chrono::duration_cast<std::chrono::nanoseconds>(report.turns.longest).count();
  turns["longest_actor"] = report.turns.longest_actor;
  out["peak_rss_bytes"] = report.peak_rss_bytes;
  out["quarantine"] = report.quarantine;
  out["sources"] = json::tree::array();
  for (const auto &source : report.sources)
    out["sources"].push_back(written(source));
  return out;
}

result<run_report> run_report_from_json(std::string_view text) {
  json::document document;
  const auto root = document.parse(text);
  if (!root)
    return with_context(root.error(), "run report");
  report_reader in;
  run_report out;
  out.process = in.get<std::string>(*root, "process");
  in.fill(*out.counters, counts, *root, "counters");
  fill_stages(in, out.counters->stages, *root);
  in.fill(*out.counters->memory, memory_counts, *root, "memory");
  out.turns = turns_from(in, *root);
  out.peak_rss_bytes = in.get<std::uint64_t>(*root, "peak_rss_bytes");
  out.quarantine = in.get<std::string>(*root, "quarantine");
  out.sources = in.list<source_report>(
      *root, "sources", [&in](const json::value &source) { return source_from(in, source); });
  if (!in.ok())
    return with_context(std::move(in).failure(), "run report");
  return out;
}

void add(run_report &sum, const run_report &one) {
  add_fields(*sum.counters, *one.counters, counts);
  add_fields(*sum.counters->memory, *one.counters->memory, memory_counts);
  for (const auto &[name, stage] : stages)
    add_fields(sum.counters->stages.*stage, one.counters->stages.*stage, work);
  sum.turns.long_turns += one.turns.long_turns;
  if (one.turns.longest > sum.turns.longest) {
    sum.turns.longest = one.turns.longest;
    sum.turns.longest_actor = one.turns.longest_actor;
  }
  sum.peak_rss_bytes += one.peak_rss_bytes;
  if (!one.quarantine.empty())
    sum.quarantine += (sum.quarantine.empty() ? "" : ", ") + one.quarantine;
  sum.sources.insert(sum.sources.end(), one.sources.begin(), one.sources.end());
}

} // namespace millrace
