// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "actors/node/host_codec.hpp"
#include "actors/trainer/feed_desk.hpp"

#include <boost/test/unit_test.hpp>

namespace millrace::test {

/// What a desk has answered, by request. Thread: any.
class answer_log {
public:
  struct entry {
    entry() = default;
    entry(feed_answer what, message rest) : about(std::move(what)), parts(std::move(rest)) {}
    feed_answer about;
    message parts; ///< after it
  };

  feed_desk::reply taker() {
    return [this](request_id request, message parts) {
      const std::lock_guard lock(mutex_);
      const auto about = decode_host({parts.at(0)});
      parts.erase(parts.begin());
      if (!about || !std::holds_alternative<feed_answer>(about->what) ||
          !answers_.try_emplace(request, std::get<feed_answer>(about->what), std::move(parts))
               .second)
        ++faults_; // Boost.Test has one thread
      came_.notify_all();
    };
  }
  /// Once it is there.
  entry wait_for(request_id request) {
    std::unique_lock lock(mutex_);
    BOOST_REQUIRE(
        came_.wait_for(lock, std::chrono::seconds(20), [&] { return answers_.contains(request); }));
    return answers_[request];
  }
  bool has(request_id request) {
    const std::lock_guard lock(mutex_);
    return answers_.contains(request);
  }

private:
  std::mutex mutex_;
  std::condition_variable came_;
  std::map<request_id, entry> answers_;
  int faults_ = 0;
};

/// A desk of rank 3, trainers that ask it, and a thread that waits at it.
struct feed_fixture {
  answer_log answers;
  std::shared_ptr<wait_board> waits = std::make_shared<wait_board>();
  std::shared_ptr<feed_desk> desk;
  request_id last = 0;
  std::uint32_t peers = 1;

  void open(std::uint32_t count, std::chrono::milliseconds patience = std::chrono::seconds(60),
            bool restarts = false) {
    peers = count;
    desk = std::make_shared<feed_desk>(
        feed_desk_options{.rank = 3, .peers = count, .patience = patience, .restarts = restarts},
        answers.taker(), waits);
  }

  feed_question question(feed_wish wish, std::uint32_t peer = 0, std::uint64_t step = 0,
                         std::uint64_t generation = 1) const {
    return {3, peer, peers, peer + 100, wish, generation, step, 0, ""};
  }
  request_id ask(const feed_question &what) {
    desk->ask(++last, what);
    return last;
  }
  request_id ask(feed_wish wish, std::uint32_t peer = 0, std::uint64_t step = 0,
                 std::uint64_t generation = 1) {
    return ask(question(wish, peer, step, generation));
  }
  feed_answer answer_to(feed_wish wish, std::uint32_t peer = 0, std::uint64_t step = 0,
                        std::uint64_t generation = 1) {
    return answers.wait_for(ask(wish, peer, step, generation)).about;
  }
  /// Every peer is there and knows that generation 1 has begun, after `resume`.
  void begin(std::uint64_t resume = 0) {
    for (std::uint32_t peer = 0; peer < peers; ++peer)
      ask(feed_wish::here, peer);
    BOOST_REQUIRE(desk->wait_for_all());
    desk->begin(1, resume, "/state/step");
    for (std::uint32_t peer = 0; peer < peers; ++peer)
      BOOST_TEST((answer_to(feed_wish::next, peer, 0, 0).state == feed_state::begin));
  }

  static feed_step step(std::uint64_t number, std::size_t micro_batches = 2) {
    feed_step out{number, {}, 10, 20, 30, {}};
    out.digest.bytes.fill(7);
    for (std::size_t i = 0; i < micro_batches; ++i)
      out.micro_batches.push_back({frame::copy_of(std::vector<std::byte>(8, std::byte(i))),
                                   frame::copy_of(std::vector<std::byte>(100, std::byte(i)))});
    return out;
  }
  std::future<status> train(std::uint64_t number) {
    return std::async(std::launch::async, [this, number] { return desk->train(step(number)); });
  }
  std::future<status> save() {
    return std::async(std::launch::async, [this] { return desk->save("/state/save"); });
  }
  /// What is waited for, for people.
  std::string shown() const {
    const auto all = waits->snapshot();
    return all.empty() ? "" : all.front().who + " waits for " + all.front().what;
  }
};

} // namespace millrace::test
