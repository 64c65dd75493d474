// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/temporary_folder.hpp"
#include "transport/hub.hpp"

namespace millrace::test {

inline constexpr std::chrono::seconds long_enough{20}; ///< a test that waits so long has failed

/// A message that is only a number.
inline message numbered(std::uint64_t number) {
  return {frame::copy_of(std::as_bytes(std::span(&number, 1)))};
}
inline std::uint64_t number_of(const message &parts) {
  std::uint64_t number = 0;
  if (!parts.empty() && parts[0].size() >= sizeof number)
    std::memcpy(&number, parts[0].data(), sizeof number);
  return number;
}

/// What a hub has told its owner. Thread: any.
class hub_log final : public hub_listener {
public:
  struct arrival {
    process_identity from;
    message parts;
  };
  struct change {
    link_id link;
    link_state state;
    std::string why;
  };

  void received(const process_identity &from, message parts) override {
    const std::lock_guard lock(mutex_);
    ++count_;
    numbers_.push_back(number_of(parts));
    if (keep_)
      arrivals_.push_back({from, std::move(parts)});
    changed_.notify_all();
  }
  void asked(request_id request, message parts) override {
    const std::lock_guard lock(mutex_);
    questions_.emplace_back(request, std::move(parts));
    changed_.notify_all();
  }
  void link_changed(link_id link, link_state state, const std::string &why) override {
    const std::lock_guard lock(mutex_);
    changes_.push_back({link, state, why});
    changed_.notify_all();
  }
  void room_came(link_id) override {
    const std::lock_guard lock(mutex_);
    ++rooms_;
    changed_.notify_all();
  }

  /// Waits until so many messages have come. @returns whether they have.
  bool wait_for(std::size_t count) {
    return wait([this, count] { return count_ >= count; });
  }
  bool wait_for_state(link_state state) {
    return wait([this, state] {
      return std::any_of(changes_.begin(), changes_.end(),
                         [state](const change &one) { return one.state == state; });
    });
  }
  bool wait_for_room(std::size_t count) {
    return wait([this, count] { return rooms_ >= count; });
  }
  /// The questions that have come, of which there must be `count`.
  std::vector<std::pair<request_id, message>> wait_for_questions(std::size_t count) {
    wait([this, count] { return questions_.size() >= count; });
    const std::lock_guard lock(mutex_);
    return questions_;
  }

  std::size_t count() const {
    const std::lock_guard lock(mutex_);
    return count_;
  }
  std::vector<arrival> arrivals() const {
    const std::lock_guard lock(mutex_);
    return arrivals_;
  }
  std::vector<change> changes() const {
    const std::lock_guard lock(mutex_);
    return changes_;
  }
  /// Why a link is in that state; empty if none is.
  std::string why(link_state state) const {
    const std::lock_guard lock(mutex_);
    for (const auto &one : changes_)
      if (one.state == state)
        return one.why;
    return {};
  }
  /// Numbers of all messages, in the order of arrival.
  std::vector<std::uint64_t> numbers() const {
    const std::lock_guard lock(mutex_);
    return numbers_;
  }
  /// Lets go of all frames that have come.
  void forget() {
    const std::lock_guard lock(mutex_);
    arrivals_.clear();
  }
  /// Whether frames are kept from now on; those that came are let go.
  void keep(bool messages) {
    const std::lock_guard lock(mutex_);
    arrivals_.clear();
    keep_ = messages;
  }
  bool keeps() const {
    const std::lock_guard lock(mutex_);
    return keep_;
  }

private:
  template <class Condition> bool wait(Condition condition) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, long_enough, condition);
  }

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool keep_ = true;
  std::size_t count_ = 0, rooms_ = 0;
  std::vector<arrival> arrivals_;
  std::vector<std::uint64_t> numbers_;
  std::vector<change> changes_;
  std::vector<std::pair<request_id, message>> questions_;
};

/// Waits for something that nobody tells of: looks again every millisecond.
inline bool eventually(const std::function<bool()> &condition) {
  const auto end = std::chrono::steady_clock::now() + long_enough;
  std::mutex mutex;
  std::condition_variable never;
  std::unique_lock lock(mutex);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end)
      return false;
    never.wait_for(lock, std::chrono::milliseconds(1));
  }
  return true;
}

/// Options that fit tests: short times, much memory.
inline hub_options some_options(const std::string &process, const std::string &bind) {
  hub_options options;
  options.bind = bind;
  options.self = {.run = "run",
                  .process = process,
                  .roles = {"scorer"},
                  .incarnation = 1,
                  .program = "test",
                  .config = "c0ffee"};
  options.limits.timeout = std::chrono::milliseconds(2000);
  options.limits.back_off = std::chrono::milliseconds(5);
  options.memory = std::make_shared<memory_meter>();
  options.memory_limit = std::uint64_t{1} << 30;
  return options;
}

/// A hub and what it told.
struct host {
  explicit host(hub_options options_) : options(std::move(options_)) { start(); }

  void start() {
    auto started = hub::start(options, log);
    if (!started)
      throw std::runtime_error(started.error().message);
    sockets = std::move(*started);
  }
  link_target target() const {
    return {.process = options.self.process,
            .incarnation = options.self.incarnation,
            .endpoint = sockets->endpoint(),
            .key = options.curve ? options.curve->mine.public_key : ""};
  }

  hub_options options;
  hub_log log;
  std::unique_ptr<hub> sockets;
};

/// Bytes that depend on `seed` and their place.
inline frame some_bytes(std::size_t size, std::uint64_t seed) {
  buffer memory(size);
  std::uint64_t x = seed * 0x9E3779B97F4A7C15U + 1;
  for (std::size_t i = 0; i < size; i += 8) {
    x = x * 6364136223846793005U + 1442695040888963407U;
    std::memcpy(memory.data() + i, &x, std::min<std::size_t>(8, size - i));
  }
  return std::move(memory).freeze();
}

inline bool same(const frame &a, const frame &b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0);
}

} // namespace millrace::test
