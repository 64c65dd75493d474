// SPDX-License-Identifier: Apache-2.0
#include "actors/node/status_text.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "actors/node/wait_chain.hpp"
#include "runtime/text_table.hpp"
#include "runtime/utf8.hpp"

namespace millrace {
namespace {

constexpr std::array<std::string_view, 4> state_names{"alive", "draining", "left", "gone"};

std::string_view name_of(process_state state) {
  return state_names[static_cast<std::size_t>(state)];
}

bool is_there(const status_line &line) {
  return line.entry.state == process_state::alive || line.entry.state == process_state::draining;
}

/// By stage, then scorer-2 before scorer-10.
std::vector<const status_line *> in_order(const status_answer &answer) {
  std::vector<const status_line *> lines;
  for (const auto &each : answer.processes)
    lines.push_back(&each);
  const auto key = [](const status_line &line) {
    const auto &actors = line.entry.actors;
    return std::make_tuple(actors.empty() ? role::host : actors.front().what,
                           line.entry.process.size(), std::string_view(line.entry.process));
  };
  std::sort(lines.begin(), lines.end(), [&](auto a, auto b) { return key(*a) < key(*b); });
  return lines;
}

const status_line *find(const status_answer *answer, const process_entry &entry) {
  if (answer == nullptr)
    return nullptr;
  for (const auto &each : answer->processes)
    if (each.entry.process == entry.process && each.entry.incarnation == entry.incarnation)
      return &each;
  return nullptr;
}

/// Counters that say where the run stands: they have no rate.
constexpr std::array<std::string_view, 3> states{"version", "next_step", "backlog_steps"};

struct rate {
  std::string name;
  double per_second = 0;
};

struct rates {
  std::vector<rate> all;
  bool since_start = true;
};

std::uint64_t value_of(const process_status &status, std::string_view name) {
  for (const auto &each : status.counters)
    if (each.name == name)
      return each.value;
  return 0;
}

/// By the clock of the process: its news come when they come.
rates rates_of(const status_line &now, const status_line *before) {
  const std::uint64_t ms = now.status.uptime_ms;
  const bool newer = before != nullptr && before->status.uptime_ms < ms;
  rates made{{}, !newer};
  const std::uint64_t span = newer ? ms - before->status.uptime_ms : ms;
  if (span == 0)
    return made;
  for (const auto &each : now.status.counters) {
    if (std::ranges::find(states, each.name) != states.end())
      continue;
    const std::uint64_t old = newer ? value_of(before->status, each.name) : 0;
    const std::uint64_t more = each.value - std::min(old, each.value);
    made.all.push_back(
        {to_one_line(each.name), static_cast<double>(more) * 1'000 / static_cast<double>(span)});
  }
  return made;
}

std::string text_of(const rate &each) {
  const auto whole = static_cast<std::uint64_t>(std::llround(std::min(each.per_second, 1e18)));
  const bool is_bytes = each.name == "bytes" || each.name.ends_with("_bytes");
  const std::string number = is_bytes                 ? byte_count(whole)
                             : each.per_second < 9.95 ? fmt::format("{:.1f}", each.per_second)
                                                      : grouped(whole);
  return fmt::format("{} {}/s", each.name, number);
}

std::string rates_text(const rates &made) {
  std::string text;
  for (const rate &each : made.all)
    text += (text.empty() ? (made.since_start ? "~" : "") : ", ") + text_of(each);
  return text;
}

/// "assembler, scorer x2"; role host only where it is the only one.
std::string roles_text(const process_entry &entry) {
  std::map<role, std::size_t> counts;
  for (const auto &each : entry.actors)
    ++counts[each.what];
  if (counts.size() > 1)
    counts.erase(role::host);
  std::string text;
  for (const auto &[what, count] : counts) {
    text += (text.empty() ? "" : ", ") + std::string(to_string(what));
    if (count > 1)
      text += fmt::format(" x{}", count);
  }
  return text;
}

std::string held_text(const process_status &status) {
  if (status.limit == 0)
    return byte_count(status.held);
  return fmt::format("{:.0f}% ({} of {})",
                     100 * static_cast<double>(status.held) / static_cast<double>(status.limit),
                     byte_count(status.held), byte_count(status.limit));
}

std::vector<std::string> row_of(const status_line &line, const status_line *before) {
  const auto &status = line.status;
  const std::string news = duration_text(line.age_ms) + (is_silent(line) ? " !" : "");
  return {to_one_line(line.entry.process),
          roles_text(line.entry),
          fmt::format("{}:{}", to_one_line(status.host), status.pid),
          std::string(name_of(line.entry.state)),
          duration_text(status.uptime_ms),
          is_there(line) ? held_text(status) : "",
          is_there(line) ? byte_count(status.in_flight) : "",
          to_one_line(status.program),
          news,
          is_there(line) ? rates_text(rates_of(line, before)) : ""};
}

/// What the planner's process says of it; nothing if there is none.
std::string progress_of(const status_answer &answer) {
  for (const auto &each : answer.processes)
    if (const auto step = value_of(each.status, "next_step"); step != 0 && is_there(each))
      return fmt::format(
          "policy version {}, step {} is collected, {} steps' worth of groups wait\n",
          value_of(each.status, "version"), step, value_of(each.status, "backlog_steps"));
  return {};
}

std::string header_of(const status_answer &answer) {
  std::array<std::size_t, state_names.size()> counts{};
  for (const auto &each : answer.processes)
    ++counts[static_cast<std::size_t>(each.entry.state)];
  std::string text;
  for (std::size_t i = 0; i < counts.size(); ++i)
    if (counts[i] != 0)
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", counts[i], state_names[i]);
  return fmt::format("run {}: {}\n{}", to_one_line(answer.run),
                     text.empty() ? "no process is registered" : text, progress_of(answer));
}

json::tree tree_of(const wait_entry &wait) {
  json::tree out;
  out["who"] = wait.who;
  out["what"] = wait.what;
  out["on"] = wait.on;
  out["ms"] = wait.ms;
  return out;
}

json::tree tree_of(const process_status &status) {
  json::tree out;
  out["host"] = status.host;
  out["pid"] = status.pid;
  out["program"] = status.program;
  out["uptime_ms"] = status.uptime_ms;
  out["held"] = status.held;
  out["mapped"] = status.mapped;
  out["limit"] = status.limit;
  out["peak_rss"] = status.peak_rss;
  out["in_flight"] = status.in_flight;
  out["counters"] = json::tree::object();
  for (const auto &each : status.counters)
    out["counters"][each.name] = each.value;
  out["waits"] = json::tree::array();
  for (const auto &each : status.waits)
    out["waits"].push_back(tree_of(each));
  return out;
}

json::tree tree_of(const status_line &line, const status_line *before) {
  json::tree out;
  out["process"] = line.entry.process;
  out["incarnation"] = line.entry.incarnation;
  out["endpoint"] = line.entry.endpoint;
  out["state"] = name_of(line.entry.state);
  out["actors"] = json::tree::array();
  for (const auto &each : line.entry.actors)
    out["actors"].push_back({{"role", to_string(each.what)}, {"name", each.name}});
  out["registered_ms"] = line.since_ms;
  out["age_ms"] = line.age_ms;
  out["silent"] = is_silent(line);
  out["status"] = tree_of(line.status);
  const rates made = rates_of(line, before);
  out["rates_since_start"] = made.since_start;
  out["rates"] = json::tree::object();
  for (const rate &each : made.all)
    out["rates"][each.name] = each.per_second;
  return out;
}

std::string text_of(const wait_link &link) {
  const bool many = link.others != 0;
  std::string text = to_one_line(link.who);
  if (many)
    text += fmt::format(" and {} other{}", link.others, link.others == 1 ? "" : "s");
  if (link.what.starts_with("has "))
    text += (many ? " have " : " has ") + to_one_line(link.what.substr(4));
  else
    text += (many ? " wait for " : " waits for ") + to_one_line(link.what);
  text += " (" + duration_text(link.ms);
  if (link.silent_ms != 0)
    text += "; no news of its process for " + duration_text(link.silent_ms);
  return text + ")";
}

std::vector<std::string> lines_of(const wait_chain &chain) {
  std::vector<std::string> lines;
  for (const wait_link &each : chain.links)
    lines.push_back(text_of(each));
  if (!chain.end.empty())
    lines.push_back(to_one_line(chain.end));
  return lines;
}

json::tree tree_of(const wait_chain &chain) {
  json::tree out;
  out["links"] = json::tree::array();
  for (const wait_link &each : chain.links)
    out["links"].push_back({{"who", each.who},
                            {"others", each.others},
                            {"what", each.what},
                            {"on", each.on},
                            {"ms", each.ms},
                            {"silent_ms", each.silent_ms}});
  out["end"] = chain.end;
  return out;
}

} // namespace

bool is_silent(const status_line &line) noexcept {
  return is_there(line) && line.age_ms >= old_news_ms;
}

std::string status_text(const status_answer &now, const status_answer *before) {
  std::vector<std::vector<std::string>> rows{{"process", "actors", "host:pid", "state", "up",
                                              "held", "in flight", "version", "news", "rates"}};
  bool any_silent = false;
  for (const status_line *line : in_order(now)) {
    rows.push_back(row_of(*line, find(before, line->entry)));
    any_silent = any_silent || is_silent(*line);
  }
  std::string text = header_of(now);
  if (rows.size() > 1)
    text += text_table(rows);
  if (any_silent)
    text += "! no news: the process hangs, or the way between it and the directory is cut\n";
  return text;
}

json::tree status_json(const status_answer &now, const status_answer *before) {
  json::tree out;
  out["run"] = now.run;
  out["processes"] = json::tree::array();
  for (const status_line *line : in_order(now))
    out["processes"].push_back(tree_of(*line, find(before, line->entry)));
  return out;
}

std::string why_text(const status_answer &answer) {
  const wait_report report = explain_waits(answer);
  std::string text;
  if (!report.note.empty())
    text = to_one_line(report.note) + '\n';
  bool first = true;
  for (const wait_chain &chain : report.chains) {
    if (!std::exchange(first, false))
      text += '\n';
    for (const auto &line : lines_of(chain))
      text += line + '\n';
  }
  return text;
}

std::string why_line(const status_answer &answer) {
  const wait_report report = explain_waits(answer);
  std::string text = to_one_line(report.note);
  if (!report.chains.empty())
    for (const auto &line : lines_of(report.chains.front()))
      text += (text.empty() ? "" : "; ") + line;
  return text;
}

json::tree why_json(const status_answer &answer) {
  const wait_report report = explain_waits(answer);
  json::tree out;
  out["run"] = answer.run;
  out["note"] = report.note;
  out["chains"] = json::tree::array();
  for (const wait_chain &each : report.chains)
    out["chains"].push_back(tree_of(each));
  return out;
}

} // namespace millrace
