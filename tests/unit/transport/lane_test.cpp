// SPDX-License-Identifier: Apache-2.0
// Both sides of a lane, without sockets.
#include "transport/lane_receiver.hpp"
#include "transport/lane_sender.hpp"

#include <algorithm>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "runtime/random.hpp"
#include "tests/support/hubs.hpp"

using namespace millrace;
using namespace millrace::test;
using namespace std::chrono_literals;

namespace {

using verdict = lane_receiver::verdict;

const lane_sender::time start{};
constexpr lane_sender::pace slow{.timeout = 10s, .min_rate = 1000};

message of(std::size_t bytes) { return {frame::copy_of(std::vector<std::byte>(bytes))}; }

/// Ids of all that can leave now.
std::vector<std::uint64_t> leave(lane_sender &from) {
  std::vector<std::uint64_t> ids;
  while (const auto *what = from.next(start))
    ids.push_back(what->id);
  return ids;
}

lane_sender data_lane(std::uint64_t credit, int messages, std::size_t bytes) {
  lane_sender made(true, slow);
  BOOST_REQUIRE(made.begin(0, credit));
  for (int i = 0; i < messages; ++i)
    made.push(of(bytes), false);
  return made;
}

using ids = std::vector<std::uint64_t>;

BOOST_AUTO_TEST_SUITE(lanes)

BOOST_AUTO_TEST_CASE(nothing_leaves_without_a_session) {
  lane_sender one(false, slow);
  one.push(of(1), false);
  BOOST_TEST(one.next(start) == nullptr);
  BOOST_TEST(one.messages() == 1U);
}

BOOST_AUTO_TEST_CASE(credit_bounds_what_leaves) {
  auto one = data_lane(250, 4, 100);
  BOOST_TEST((leave(one) == ids{1, 2}));
  BOOST_TEST(one.credit_left() == 50U);
  one.credit(300);
  BOOST_TEST((leave(one) == ids{3}));
  one.credit(1); // older news
  BOOST_TEST(one.credit_left() == 0U);
}

BOOST_AUTO_TEST_CASE(credit_is_asked_for_when_no_more_than_the_next_message_is_on_the_way) {
  auto one = data_lane(250, 4, 100);
  leave(one);
  BOOST_TEST(one.wanted() == 0U);
  BOOST_REQUIRE(one.received(1));
  BOOST_TEST(one.wanted() == 300U);
  one.credit(300);
  leave(one);
  BOOST_TEST(one.wanted() == 0U);
}

BOOST_AUTO_TEST_CASE(what_was_asked_for_does_not_keep_others_from_asking_for_credit) {
  auto one = data_lane(0, 1, 100);
  one.push(of(500), true);
  leave(one);
  BOOST_TEST(one.wanted() == 100U);
}

BOOST_AUTO_TEST_CASE(what_was_asked_for_passes_what_lacks_credit) {
  auto one = data_lane(0, 2, 100);
  one.push(of(500), true);
  BOOST_TEST((leave(one) == ids{1}));
  BOOST_TEST(one.wanted() == 100U);
  one.credit(200);
  BOOST_TEST((leave(one) == ids{2, 3}));
}

BOOST_AUTO_TEST_CASE(what_was_asked_for_stays_behind_what_has_credit) {
  lane_sender one(true, slow);
  one.push(of(10), false);
  one.push(of(20), true);
  one.push(of(30), false);
  BOOST_REQUIRE(one.begin(0, 100));
  std::vector<std::uint64_t> sizes;
  while (const auto *what = one.next(start))
    sizes.push_back(what->bytes);
  BOOST_TEST((sizes == ids{10, 20, 30}));
}

BOOST_AUTO_TEST_CASE(a_message_without_bytes_needs_no_credit) {
  auto one = data_lane(0, 1, 0);
  BOOST_TEST((leave(one) == ids{1}));
  BOOST_TEST(one.wanted() == 0U);
}

BOOST_AUTO_TEST_CASE(what_was_received_is_gone) {
  auto one = data_lane(1000, 4, 100);
  leave(one);
  BOOST_REQUIRE(one.received(3));
  BOOST_TEST(one.messages() == 1U);
  BOOST_TEST(one.bytes() == 100U);
  BOOST_REQUIRE(one.received(2)); // older news
  BOOST_TEST(one.messages() == 1U);
}

BOOST_AUTO_TEST_CASE(what_was_never_sent_cannot_be_received) {
  auto one = data_lane(100, 2, 100);
  leave(one);
  BOOST_TEST(!one.received(2));
}

BOOST_AUTO_TEST_CASE(a_new_session_sends_again_from_the_first_that_was_not_received) {
  auto one = data_lane(1000, 4, 100);
  leave(one);
  BOOST_REQUIRE(one.received(1));
  one.end();
  BOOST_TEST(one.next(start) == nullptr);
  BOOST_REQUIRE(one.begin(2, 200)); // the second came too, and its answer was lost
  const auto *what = one.next(start);
  BOOST_REQUIRE(what != nullptr);
  BOOST_TEST(what->id == 3U);
  BOOST_TEST(one.number() == 1U);
  BOOST_TEST((leave(one) == ids{4}));
  BOOST_TEST(one.credit_left() == 0U);
}

BOOST_AUTO_TEST_CASE(ids_go_on_after_those_of_an_earlier_link) {
  lane_sender one(false, slow);
  one.push(of(1), false);
  BOOST_REQUIRE(one.begin(41, 0));
  BOOST_TEST((leave(one) == ids{42}));
}

BOOST_AUTO_TEST_CASE(a_peer_that_has_forgotten_what_it_received_is_noticed) {
  auto one = data_lane(1000, 3, 100);
  leave(one);
  BOOST_REQUIRE(one.received(2));
  BOOST_TEST(!one.begin(1, 1000));
}

BOOST_AUTO_TEST_CASE(the_deadline_grows_with_what_is_on_the_way) {
  auto one = data_lane(10'000, 2, 1000);
  BOOST_TEST(!one.deadline());
  leave(one); // at 1,000 bytes/s: 1 s and 2 s, each with 10 s more
  BOOST_TEST((*one.deadline() == start + 11s));
  BOOST_REQUIRE(one.received(1));
  BOOST_TEST((*one.deadline() == start + 12s));
  BOOST_REQUIRE(one.received(2));
  BOOST_TEST(!one.deadline());
}

BOOST_AUTO_TEST_CASE(a_receiver_takes_the_next_message_only) {
  lane_receiver one;
  BOOST_TEST((one.judge(1, 1) == verdict::deliver));
  one.take(1);
  BOOST_TEST((one.judge(3, 2) == verdict::hole));
  BOOST_TEST((one.judge(2, 3) == verdict::hole));
  BOOST_TEST((one.judge(1, 2) == verdict::hole));
  BOOST_TEST((one.judge(2, 1) == verdict::repeat));
  BOOST_TEST((one.judge(2, 2) == verdict::deliver));
}

BOOST_AUTO_TEST_CASE(a_new_session_starts_at_one_and_knows_what_was_delivered) {
  lane_receiver one;
  for (std::uint64_t i = 1; i <= 5; ++i)
    one.take(i);
  one.begin_session();
  BOOST_TEST((one.judge(6, 6) == verdict::hole));
  BOOST_TEST((one.judge(1, 4) == verdict::repeat));
  BOOST_TEST((one.judge(1, 6) == verdict::deliver));
  BOOST_TEST(one.delivered() == 5U);
}

/// One lane over a wire that may be cut: what is on it is lost, or has come and its answer is lost.
struct cut_wire {
  explicit cut_wire(std::uint64_t seed) : random(seed) {}

  struct flying {
    std::uint64_t number, id, value;
  };

  void push() { sender.push(numbered(++pushed), random.chance(30)); }
  void send() {
    if (const auto *what = sender.next(start))
      wire.push_back({sender.number(), what->id, number_of(what->parts)});
  }
  void arrive() {
    if (wire.empty())
      return;
    const auto one = wire.front();
    wire.erase(wire.begin());
    BOOST_REQUIRE((receiver.judge(one.number, one.id) != verdict::hole));
    if (receiver.judge(one.number, one.id) == verdict::deliver)
      delivered.push_back(one.value);
    receiver.take(one.id);
  }
  void answer() {
    BOOST_REQUIRE(sender.received(receiver.delivered()));
    sender.credit(credit += random.below(40));
  }
  void cut() {
    wire.clear();
    sender.end();
    receiver.begin_session();
    // A welcome that is older than what arrived after it makes repeats.
    answered = receiver.delivered() -
               random.below(static_cast<std::uint32_t>(receiver.delivered() - answered + 1));
    BOOST_REQUIRE(sender.begin(answered, credit = 64));
  }
  void step() {
    const auto what = random.below(100);
    what < 30 ? push() : what < 60 ? send() : what < 85 ? arrive() : what < 97 ? answer() : cut();
    if (what >= 85 && what < 97)
      answered = receiver.delivered();
  }

  random_source random;
  lane_sender sender{true, slow};
  lane_receiver receiver;
  std::vector<flying> wire;
  std::vector<std::uint64_t> delivered;
  std::uint64_t pushed = 0, credit = 0, answered = 0;
};

BOOST_AUTO_TEST_CASE(over_any_cuts_all_is_delivered_once) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    BOOST_TEST_CONTEXT("seed " << seed) {
      cut_wire wire(seed);
      wire.cut();
      for (int i = 0; i < 1000; ++i)
        wire.step();
      while (wire.delivered.size() < wire.pushed) {
        wire.answer();
        wire.send();
        wire.arrive();
      }
      auto sorted = wire.delivered;
      std::sort(sorted.begin(), sorted.end());
      BOOST_TEST((std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end()));
      BOOST_TEST(sorted.size() == wire.pushed);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
