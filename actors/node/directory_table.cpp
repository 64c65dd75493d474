// SPDX-License-Identifier: Apache-2.0
#include "actors/node/directory_table.hpp"

#include <algorithm>
#include <utility>

#include "runtime/nearest.hpp"
#include "runtime/utf8.hpp"

namespace millrace {
namespace {

bool has_ended(const process_entry &entry) noexcept {
  return entry.state == process_state::left || entry.state == process_state::gone;
}

bool has_actor(const process_entry &entry, std::string_view name) noexcept {
  return std::any_of(entry.actors.begin(), entry.actors.end(),
                     [&](const actor_entry &each) { return each.name == name; });
}

bool has_role(const process_entry &entry, role what) noexcept {
  return std::any_of(entry.actors.begin(), entry.actors.end(),
                     [&](const actor_entry &each) { return each.what == what; });
}

/// Others take over what such an actor has not done yet.
bool can_be_drained(role what) noexcept {
  return what == role::assembler || what == role::scorer || what == role::packer ||
         what == role::host;
}

/// About what an entry takes in a message.
std::size_t weight(const process_entry &entry) noexcept {
  std::size_t bytes = 100 + entry.process.size() + entry.endpoint.size() + entry.key.size();
  for (const auto &each : entry.actors)
    bytes += 40 + each.name.size();
  return bytes;
}

std::uint64_t ms_between(directory_table::time_point from, directory_table::time_point to) {
  const auto span = std::chrono::duration_cast<std::chrono::milliseconds>(to - from);
  return static_cast<std::uint64_t>(std::max<std::int64_t>(0, span.count()));
}

} // namespace

directory_table::directory_table(directory_options options, time_point now)
    : options_(std::move(options)), seen_(now), awake_(now) {}

void directory_table::touch(time_point now) {
  if (now - seen_ > options_.lease / 2)
    awake_ = now;
  seen_ = now;
}

result<directory_table::registration> directory_table::alive(time_point now, process_alive news) {
  touch(now);
  const auto found = lines_.find(news.entry.process);
  if (found != lines_.end()) {
    const process_entry &known = found->second.entry;
    const bool over = known.state == process_state::left;
    if (news.entry.incarnation < known.incarnation ||
        (news.entry.incarnation == known.incarnation && over))
      return registration::superseded;
    if (news.entry.incarnation == known.incarnation && found->second.given_up)
      return registration::given_up;
  }
  MILLRACE_TRY(check(news.entry));
  if (news.entry.state != process_state::draining) // whoever is heard of is there
    news.entry.state = process_state::alive;
  if (found == lines_.end()) {
    std::string name = news.entry.process;
    line &added = lines_[std::move(name)];
    added = {std::move(news.entry), std::move(news.status), now, now, {}, false};
    changed(added);
    return registration::added;
  }
  line &known = found->second;
  const bool news_of_same = news.entry.incarnation == known.entry.incarnation;
  const bool was_there = news_of_same && !has_ended(known.entry);
  if (!news_of_same) {
    if (!has_ended(known.entry))
      end(now, known, process_state::gone);
    replaced_.push_back(known.entry);
    known = {std::move(news.entry), std::move(news.status), now, now, {}, false};
    changed(known);
  } else {
    renew(now, known, std::move(news));
  }
  return was_there ? registration::renewed : registration::added;
}

void directory_table::renew(time_point now, line &known, process_alive news) {
  known.renewed = now;
  known.status = std::move(news.status);
  if (known.entry.state == process_state::draining) // it may not have heard of it yet
    news.entry.state = process_state::draining;
  if (news.entry == known.entry)
    return;
  for (const auto &each : known.entry.actors)
    if (const auto owner = owners_.find(each.name);
        owner != owners_.end() && owner->second == known.entry.process)
      owners_.erase(owner);
  known.entry = std::move(news.entry);
  changed(known);
}

status directory_table::check(const process_entry &entry) const {
  if (entry.process.empty())
    return fail(errc::bad_value, "a process at {} registers without a name",
                to_one_line(entry.endpoint));
  std::set<std::string_view> names;
  for (const auto &each : entry.actors) {
    if (each.name.empty() || !names.insert(each.name).second)
      return fail(errc::bad_value, "process '{}' registers two actors named '{}'",
                  to_one_line(entry.process), to_one_line(each.name));
    const auto owner = owners_.find(each.name);
    if (owner != owners_.end() && owner->second != entry.process)
      return fail(errc::conflict,
                  "actor '{}' of process '{}' is in process '{}' already; --name "
                  "gives it another name",
                  to_one_line(each.name), to_one_line(entry.process), to_one_line(owner->second));
  }
  return {};
}

void directory_table::changed(const line &known) {
  changed_.insert(known.entry.process);
  if (has_ended(known.entry))
    return;
  for (const auto &each : known.entry.actors)
    owners_[each.name] = known.entry.process;
}

void directory_table::end(time_point now, line &known, process_state state) {
  for (const auto &each : known.entry.actors)
    if (const auto owner = owners_.find(each.name);
        owner != owners_.end() && owner->second == known.entry.process)
      owners_.erase(owner);
  known.entry.state = state;
  known.ended = now;
  changed(known);
}

void directory_table::leaves(time_point now, const process_leaves &news) {
  touch(now);
  const auto found = lines_.find(news.process);
  if (found == lines_.end() || found->second.entry.incarnation != news.incarnation ||
      found->second.entry.state == process_state::left)
    return;
  end(now, found->second, process_state::left);
}

void directory_table::lost(const process_lost &news) {
  const auto found = lines_.find(news.process);
  if (found != lines_.end() && found->second.entry.incarnation == news.incarnation)
    found->second.given_up = true;
}

directory_table::line *directory_table::find(std::string_view name) {
  line *ended = nullptr;
  for (auto &[process, known] : lines_)
    if (process == name || has_actor(known.entry, name)) {
      if (!has_ended(known.entry))
        return &known;
      ended = &known;
    }
  return ended;
}

tl::unexpected<error> directory_table::unknown(std::string_view name) const {
  std::vector<std::string_view> names;
  for (const auto &[process, known] : lines_)
    if (!has_ended(known.entry))
      names.push_back(process);
  for (const auto &[actor, process] : owners_)
    names.push_back(actor);
  const auto guess = nearest(name, names);
  return fail(errc::not_found, "nobody in run {} is named '{}'{}", options_.run, to_one_line(name),
              guess ? fmt::format("; did you mean '{}'?", to_one_line(*guess))
                    : "; millrace status shows the names");
}

status directory_table::may_leave(const line &leaving) const {
  for (const auto &each : leaving.entry.actors) {
    if (!can_be_drained(each.what))
      return fail(errc::unsupported,
                  "'{}' cannot be drained: nobody takes over from {} '{}'; to end the run, stop "
                  "the planner's process",
                  to_one_line(leaving.entry.process), to_string(each.what), to_one_line(each.name));
    if (each.what == role::host)
      continue;
    const bool replaced = std::any_of(lines_.begin(), lines_.end(), [&](const auto &other) {
      return &other.second != &leaving && other.second.entry.state == process_state::alive &&
             has_role(other.second.entry, each.what);
    });
    if (!replaced)
      return fail(errc::conflict,
                  "'{}' cannot be drained: the run has no other {}; start one first",
                  to_one_line(leaving.entry.process), to_string(each.what));
  }
  return {};
}

result<process_entry> directory_table::drain(std::string_view name) {
  line *known = find(name);
  if (known == nullptr)
    return unknown(name);
  if (has_ended(known->entry))
    return fail(errc::conflict, "process '{}' {} already", to_one_line(known->entry.process),
                known->entry.state == process_state::left ? "has left" : "is gone");
  if (known->entry.state == process_state::alive) {
    MILLRACE_TRY(may_leave(*known));
    known->entry.state = process_state::draining;
    changed(*known);
  }
  return known->entry;
}

std::vector<process_entry> directory_table::expire(time_point now) {
  touch(now);
  std::vector<process_entry> gone;
  std::erase_if(lines_, [&](const auto &each) {
    return has_ended(each.second.entry) && now - each.second.ended > options_.keep;
  });
  if (now - awake_ < options_.lease)
    return gone;
  for (auto &[process, known] : lines_)
    if (!has_ended(known.entry) && now - known.renewed > options_.lease) {
      end(now, known, process_state::gone);
      gone.push_back(known.entry);
    }
  return gone;
}

std::vector<directory_view> directory_table::chunks(std::vector<process_entry> entries) const {
  std::vector<directory_view> views;
  std::size_t bytes = 0;
  for (process_entry &each : entries) {
    const std::size_t more = weight(each);
    if (views.empty() || views.back().entries.size() == view_entries || bytes + more > view_bytes) {
      views.push_back({options_.incarnation, {}});
      bytes = 0;
    }
    bytes += more;
    views.back().entries.push_back(std::move(each));
  }
  return views;
}

std::vector<directory_view> directory_table::changes() {
  std::vector<process_entry> entries = std::exchange(replaced_, {}); // before who replaced them
  for (const auto &process : std::exchange(changed_, {}))
    if (const auto found = lines_.find(process); found != lines_.end())
      entries.push_back(found->second.entry);
  return chunks(std::move(entries));
}

std::vector<directory_view> directory_table::view() const {
  std::vector<process_entry> entries;
  for (const auto &[process, known] : lines_)
    entries.push_back(known.entry);
  return chunks(std::move(entries));
}

status_answer directory_table::answer(time_point now) const {
  status_answer all{options_.run, {}};
  all.processes.reserve(lines_.size());
  for (const auto &[process, known] : lines_)
    all.processes.push_back({known.entry, known.status, ms_between(known.renewed, now),
                             ms_between(known.registered, now)});
  return all;
}

} // namespace millrace
