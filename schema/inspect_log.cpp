// SPDX-License-Identifier: Apache-2.0
#include "schema/inspect_log.hpp"

#include <utility>

#include "runtime/mapping.hpp"

namespace millrace {

namespace {

constexpr std::size_t index_of(episode_state state) { return static_cast<std::size_t>(state); }

/// Reads records into a summary. Takes them as they are: whether each follows from those before it
/// is the planner's business.
class log_inspection {
public:
  explicit log_inspection(log_summary &out) : out_(out) {}

  void add(const log_record &record) {
    ++out_.records[record.index()];
    std::visit([this](const auto &what) { take(what); }, record);
  }

private:
  void take(const log_open &what) { out_.events.push_back({what, last_step()}); }
  void take(const log_generation &what) { out_.events.push_back({what, last_step()}); }

  void take(const log_commit &what) {
    step_summary step;
    step.groups = what.groups.size();
    step.traces = what.traces;
    step.samples = what.samples;
    step.tokens = what.tokens;
    step.padding = what.padding;
    step.micro_batches = what.bins.size();
    step.dummies = what.dummies;
    step.wire_bytes = what.wire_bytes;
    step.digest = what.digest;
    for (const auto &group : what.groups)
      step.states.add(group);
    out_.steps.insert_or_assign(what.step, std::move(step));
  }

  void take(const log_settled &what) {
    for (const auto &group : what.groups)
      out_.outside.add(group);
  }

  void take(const log_scored &) {}

  void take(const log_trained &what) {
    const auto found = out_.steps.find(what.step);
    if (found == out_.steps.end())
      return;
    found->second.totals = what;
    if (found->second.reached == step_summary::mark::committed)
      found->second.reached = step_summary::mark::trained;
  }

  void take(const log_durable &what) {
    for (auto &[number, step] : out_.steps)
      if (number <= what.step)
        step.reached = step_summary::mark::durable;
  }

  void take(const log_rolled_back &what) {
    out_.events.push_back({what, last_step()});
    auto step = out_.steps.lower_bound(what.first);
    while (step != out_.steps.end() && step->first <= what.last) {
      if (step->first <= what.trained) {
        step->second.states.move(episode_state::trained, episode_state::rolled_back);
        out_.lost.add(step->second.states);
      }
      step = out_.steps.erase(step);
    }
  }

  std::uint64_t last_step() const { return out_.steps.empty() ? 0 : out_.steps.rbegin()->first; }

  log_summary &out_;
};

} // namespace

void state_counts::add(const log_group &group) {
  ++groups;
  for (const auto state : group.states)
    ++episodes[state];
  for (const auto &row : group.samples) {
    samples[row.state] += row.samples;
    tokens[row.state] += row.tokens;
  }
  cut_tokens += group.cut_tokens;
}

void state_counts::add(const state_counts &other) {
  groups += other.groups;
  for (std::size_t i = 0; i < episode_state_count; ++i) {
    episodes[i] += other.episodes[i];
    samples[i] += other.samples[i];
    tokens[i] += other.tokens[i];
  }
  cut_tokens += other.cut_tokens;
}

void state_counts::move(episode_state from, episode_state to) {
  for (auto *counts : {&episodes, &samples, &tokens})
    (*counts)[index_of(to)] += std::exchange((*counts)[index_of(from)], 0);
}

const log_open *log_summary::last_start() const noexcept {
  for (auto event = events.rbegin(); event != events.rend(); ++event)
    if (const auto *start = std::get_if<log_open>(&event->what); start != nullptr)
      return start;
  return nullptr;
}

state_counts log_summary::states() const {
  auto out = outside;
  out.add(lost);
  for (const auto &[number, step] : steps) {
    auto counts = step.states;
    if (step.reached == step_summary::mark::committed)
      counts.move(episode_state::trained, episode_state::held);
    out.add(counts);
  }
  return out;
}

result<log_summary> inspect_log(const frame &bytes, const std::string &name) {
  log_summary out;
  log_inspection all(out);
  const auto extent =
      read_planner_log(bytes, name, [&all](std::uint64_t, const log_record &record) -> status {
        all.add(record);
        return {};
      });
  if (!extent && extent.error().code != errc::damaged)
    return tl::unexpected(extent.error());
  out.path = name;
  out.bytes = bytes.size();
  if (extent)
    out.torn = extent->torn;
  else
    out.damage = extent.error().message;
  return out;
}

result<log_summary> inspect_log(const std::filesystem::path &path) {
  const auto bytes = map_file(path);
  if (!bytes)
    return tl::unexpected(bytes.error());
  return inspect_log(*bytes, path.string());
}

} // namespace millrace
