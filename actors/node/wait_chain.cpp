// SPDX-License-Identifier: Apache-2.0
#include "actors/node/wait_chain.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "actors/node/status_text.hpp"
#include "runtime/text_table.hpp"

namespace millrace {
namespace {

struct known_wait {
  const wait_entry *wait = nullptr;
  const status_line *process = nullptr;

  std::uint64_t ms() const { return wait->ms + process->age_ms; }
};

struct known_actor {
  role what = role::host;
  const status_line *process = nullptr;
};

bool has_ended(const status_line &line) {
  return line.entry.state == process_state::left || line.entry.state == process_state::gone;
}

bool waits_longer(const known_wait &a, const known_wait &b) {
  return a.ms() > b.ms() || (a.ms() == b.ms() && a.wait->who < b.wait->who);
}

wait_link link_of(const known_wait &at, std::size_t others) {
  return {at.wait->who, others,  at.wait->what,
          at.wait->on,  at.ms(), is_silent(*at.process) ? at.process->age_ms : 0};
}

/// Where a chain goes on.
struct next_step {
  const known_wait *wait = nullptr; ///< nullptr: nowhere
  std::string end;                  ///< why not
};

class explainer {
public:
  explicit explainer(const status_answer &answer) : answer_(answer) {
    for (const auto &line : answer.processes) {
      for (const auto &each : line.entry.actors) {
        const auto [at, is_new] = actors_.try_emplace(each.name, known_actor{each.what, &line});
        if (!is_new && !has_ended(line)) // its name may have been taken over
          at->second = {each.what, &line};
      }
    }
    for (const auto &line : answer.processes)
      if (!has_ended(line))
        for (const auto &each : line.status.waits) {
          waits_.try_emplace(each.who, known_wait{&each, &line});
          if (each.who.starts_with("trainer-")) // it has no mail, so it is not registered
            actors_.try_emplace(each.who, known_actor{role::trainer, &line});
        }
  }

  wait_report explain() {
    const auto starts = find_starts();
    for (const auto &[longest, others] : starts) {
      if (told_.count(longest->wait->who) != 0)
        continue; // an earlier chain went through it
      if (report_.chains.size() == max_wait_chains) {
        report_.note = fmt::format("trainers wait for more than these {}", max_wait_chains);
        break;
      }
      follow(*longest, others);
    }
    return std::move(report_);
  }

private:
  struct start {
    const known_wait *longest;
    std::size_t others;
  };

  std::vector<start> find_starts() {
    if (answer_.processes.empty()) {
      report_.note = "no process is registered";
      return {};
    }
    if (waits_.empty()) {
      report_.note = "nothing waits";
      return {};
    }
    auto starts = waiting_trainers();
    if (!starts.empty())
      return starts;
    const auto trainers = running(role::trainer);
    if (trainers.empty())
      report_.note = "there is no trainer";
    else
      report_.note = "no trainer waits";
    return {{longest_of_all(), 0}};
  }

  /// One for each thing that trainers wait for.
  std::vector<start> waiting_trainers() const {
    std::map<std::pair<std::string_view, std::string_view>, std::vector<const known_wait *>> kinds;
    for (const std::string_view name : running(role::trainer))
      if (const auto found = waits_.find(name); found != waits_.end())
        kinds[{found->second.wait->what, found->second.wait->on}].push_back(&found->second);
    std::vector<start> starts;
    for (auto &[kind, all] : kinds)
      starts.push_back({*std::min_element(all.begin(), all.end(),
                                          [](auto a, auto b) { return waits_longer(*a, *b); }),
                        all.size() - 1});
    std::sort(starts.begin(), starts.end(),
              [](const start &a, const start &b) { return waits_longer(*a.longest, *b.longest); });
    return starts;
  }

  /// Feeders have the role of their trainers, but are meant by their names only.
  std::vector<std::string_view> running(role what) const {
    std::vector<std::string_view> names;
    for (const auto &[name, actor] : actors_)
      if (actor.what == what && !has_ended(*actor.process) && !name.starts_with("feeder-"))
        names.push_back(name);
    return names;
  }

  const known_wait *longest_of_all() const {
    const known_wait *found = nullptr;
    for (const auto &[who, each] : waits_)
      if (found == nullptr || waits_longer(each, *found))
        found = &each;
    return found;
  }

  void follow(const known_wait &first, std::size_t others) {
    wait_chain chain;
    std::set<std::string_view> here;
    for (next_step step{&first, {}}; step.wait != nullptr;) {
      const std::string_view who = step.wait->wait->who;
      if (here.count(who) != 0) {
        chain.end = fmt::format("this is a loop: back to {}", who);
        break;
      }
      if (told_.count(who) != 0) {
        chain.end = fmt::format("{}: see above", who);
        break;
      }
      here.insert(who);
      chain.links.push_back(link_of(*step.wait, chain.links.empty() ? others : 0));
      step = next(*step.wait->wait);
      chain.end = step.end;
    }
    told_.insert(here.begin(), here.end());
    report_.chains.push_back(std::move(chain));
  }

  next_step next(const wait_entry &from) const {
    const std::string &on = from.on;
    if (on.empty())
      return {};
    if (const auto found = waits_.find(on); found != waits_.end())
      return {&found->second, {}};
    if (const auto found = actors_.find(on); found != actors_.end())
      return {nullptr, no_wait(on, *found->second.process)};
    return next_of_role(from);
  }

  static std::string no_wait(std::string_view actor, const status_line &process) {
    if (process.entry.state == process_state::left)
      return fmt::format("{} has left", actor);
    if (process.entry.state == process_state::gone)
      return fmt::format("{} is gone: no news of its process {} for {}", actor,
                         process.entry.process, duration_text(process.age_ms));
    if (is_silent(process))
      return fmt::format("{} did not wait when it was last heard of, {} ago", actor,
                         duration_text(process.age_ms));
    return fmt::format("{} does not wait: it is at work", actor);
  }

  next_step next_of_role(const wait_entry &from) const {
    const auto what = role_named(from.on);
    if (!what)
      return {nullptr, fmt::format("nobody is named {}", from.on)};
    const auto there = running(*what);
    if (there.empty())
      return {nullptr, fmt::format("there is no {}", from.on)};
    const known_wait *longest = nullptr;
    std::vector<std::string_view> at_work;
    for (const std::string_view name : there) {
      const auto found = waits_.find(name);
      if (found == waits_.end())
        at_work.push_back(name);
      else if (const wait_entry &its = *found->second.wait;
               its.what != from.what || its.on != from.on) // else it suffers, too
        if (longest == nullptr || waits_longer(found->second, *longest))
          longest = &found->second;
    }
    if (longest != nullptr)
      return {longest, {}};
    if (at_work.empty())
      return {nullptr, fmt::format("this is a loop: every {} waits for that", from.on)};
    return {nullptr, not_waiting(at_work)};
  }

  static std::optional<role> role_named(std::string_view name) {
    for (int i = 0; i <= static_cast<int>(role::host); ++i)
      if (to_string(static_cast<role>(i)) == name)
        return static_cast<role>(i);
    return std::nullopt;
  }

  /// Who is silent is named first. Precondition: not empty.
  std::string not_waiting(const std::vector<std::string_view> &names) const {
    for (const std::string_view name : names)
      if (const auto &process = *actors_.find(name)->second.process; is_silent(process))
        return no_wait(name, process);
    if (names.size() == 1)
      return no_wait(names[0], *actors_.find(names[0])->second.process);
    constexpr std::size_t most = 3;
    std::string text;
    for (std::size_t i = 0; i < std::min(most, names.size()); ++i)
      text += fmt::format("{}{}", i == 0 ? "" : ", ", names[i]);
    if (names.size() > most)
      text += fmt::format(" and {} more", names.size() - most);
    return text + " do not wait: they are at work";
  }

  const status_answer &answer_;
  std::map<std::string_view, known_actor> actors_; ///< by name
  std::map<std::string_view, known_wait> waits_;   ///< by actor, of processes that have not ended
  std::set<std::string_view> told_;
  wait_report report_;
};

} // namespace

wait_report explain_waits(const status_answer &answer) { return explainer(answer).explain(); }

} // namespace millrace
