// SPDX-License-Identifier: Apache-2.0
#include "actors/node/wait_board.hpp"

#include <algorithm>

namespace millrace {

void wait_board::set(std::string_view who, std::string_view topic, std::string_view what,
                     std::string_view on, clock::time_point now) {
  const std::lock_guard lock(mutex_);
  auto found = waits_.find(who);
  if (found == waits_.end())
    found = waits_.emplace(who, wait{std::string(topic), {}, {}, now}).first;
  wait &entry = found->second;
  if (entry.topic != topic) {
    entry.topic = topic;
    entry.since = now;
  }
  if (entry.what != what)
    entry.what = what;
  if (entry.on != on)
    entry.on = on;
}

void wait_board::clear(std::string_view who) {
  const std::lock_guard lock(mutex_);
  if (const auto found = waits_.find(who); found != waits_.end())
    waits_.erase(found);
}

std::vector<wait_entry> wait_board::snapshot(clock::time_point now) const {
  const std::lock_guard lock(mutex_);
  std::vector<wait_entry> all;
  all.reserve(waits_.size());
  for (const auto &[who, entry] : waits_) {
    const auto age = std::chrono::duration_cast<std::chrono::milliseconds>(now - entry.since);
    all.push_back({who, entry.what, entry.on,
                   static_cast<std::uint64_t>(std::max<std::int64_t>(0, age.count()))});
  }
  return all;
}

} // namespace millrace
