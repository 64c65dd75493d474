// SPDX-License-Identifier: Apache-2.0
// Links whose connections are cut, slow, or silent.
#include "transport/hub.hpp"

#include <algorithm>
#include <set>

#include <boost/test/unit_test.hpp>

#include "runtime/random.hpp"
#include "tests/support/cutting_proxy.hpp"
#include "tests/support/hubs.hpp"

using namespace millrace;
using namespace millrace::test;
using namespace std::chrono_literals;

namespace {

/// Two processes with a proxy between them.
struct cut_pair {
  explicit cut_pair(const std::function<void(hub_options &)> &change = [](hub_options &) {})
      : b(options("b", change)), proxy(b.sockets->endpoint()), a(options("a", change)) {
    auto target = b.target();
    target.endpoint = proxy.endpoint();
    link = a.sockets->open(target);
  }

  static hub_options options(const std::string &name,
                             const std::function<void(hub_options &)> &change) {
    auto made = some_options(name, "tcp://127.0.0.1:*");
    change(made);
    return made;
  }

  host b;
  cutting_proxy proxy;
  host a;
  link_id link = 0;
};

/// A message that holds its number and more, so that the whole can be checked.
message message_of(std::uint64_t number, std::size_t bytes) {
  auto parts = numbered(number);
  parts.push_back(some_bytes(bytes, number));
  return parts;
}

bool intact(const message &parts) {
  return parts.size() == 2 && same(parts[1], some_bytes(parts[1].size(), number_of(parts)));
}

BOOST_AUTO_TEST_SUITE(hubs_over_bad_links)

BOOST_AUTO_TEST_CASE(cuts_at_20_random_offsets_in_1000_messages_lose_and_repeat_nothing) {
  random_source random(20);
  cut_pair two;
  std::uint64_t cuts = 0;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    if (two.proxy.cut_is_done() && cuts < 20 && random.chance(20)) {
      two.proxy.cut_after(random.between(1, 100'000));
      ++cuts;
    }
    two.a.sockets->send(two.link, i % 4 == 0 ? lane::control : lane::data,
                        message_of(i, random.between(0, i % 4 == 0 ? 1000 : 20'000)));
    if (i % 25 == 24)
      BOOST_REQUIRE(two.b.log.wait_for(i - 20));
  }
  BOOST_REQUIRE(two.b.log.wait_for(1000));
  BOOST_TEST(two.a.sockets->stop(10s).empty());
  BOOST_TEST(cuts == 20U);
  BOOST_TEST(two.proxy.connections() >= 15U);
  std::array<std::vector<std::uint64_t>, 2> seen;
  for (const auto &one : two.b.log.arrivals()) {
    BOOST_TEST(intact(one.parts));
    seen[number_of(one.parts) % 4 == 0].push_back(number_of(one.parts));
  }
  BOOST_TEST(seen[0].size() == 750U);
  BOOST_TEST(seen[1].size() == 250U);
  for (const auto &numbers : seen)
    BOOST_TEST((std::adjacent_find(numbers.begin(), numbers.end(), std::greater_equal<>()) ==
                numbers.end()));
}

BOOST_AUTO_TEST_CASE(a_large_message_over_a_slow_link_is_not_cut) {
  cut_pair two([](hub_options &o) {
    o.limits.timeout = 250ms;
    o.limits.min_rate = 1 << 20;
  });
  two.a.sockets->send(two.link, lane::data, message_of(1, 10));
  BOOST_REQUIRE(two.b.log.wait_for(1));
  two.proxy.slow_down(4 << 20); // 0.75 s, three times the time-out
  two.a.sockets->send(two.link, lane::data, message_of(2, 3 << 20));
  BOOST_REQUIRE(two.b.log.wait_for(2));
  BOOST_TEST(intact(two.b.log.arrivals()[1].parts));
  BOOST_TEST(two.a.sockets->stats().sessions == 2U);
}

BOOST_AUTO_TEST_CASE(a_link_below_the_minimum_rate_is_renewed) {
  cut_pair two([](hub_options &o) {
    o.limits.timeout = 200ms;
    o.limits.min_rate = 100 << 20;
  });
  two.a.sockets->send(two.link, lane::data, message_of(1, 10));
  BOOST_REQUIRE(two.b.log.wait_for(1));
  two.proxy.slow_down(2 << 20); // would take 1 s
  two.a.sockets->send(two.link, lane::data, message_of(2, 2 << 20));
  BOOST_REQUIRE(eventually([&two] { return two.a.sockets->stats().sessions > 2; }));
  two.proxy.slow_down(0);
  BOOST_REQUIRE(two.b.log.wait_for(2));
  BOOST_TEST(two.b.log.count() == 2U);
}

BOOST_AUTO_TEST_CASE(a_silent_link_goes_down_and_comes_back) {
  cut_pair two([](hub_options &o) { o.limits.timeout = 100ms; });
  two.a.sockets->send(two.link, lane::data, message_of(1, 10));
  BOOST_REQUIRE(two.b.log.wait_for(1));
  two.proxy.stall(true);
  BOOST_REQUIRE(two.a.log.wait_for_state(link_state::down));
  BOOST_TEST(two.a.log.why(link_state::down) == "process 'b' was silent for 100 ms");
  two.a.sockets->send(two.link, lane::data, message_of(2, 10));
  two.proxy.stall(false);
  two.proxy.cut_all();
  BOOST_TEST(two.b.log.wait_for(2));
}

BOOST_AUTO_TEST_CASE(a_link_that_idles_stays_as_it_is) {
  cut_pair two([](hub_options &o) { o.limits.timeout = 60ms; });
  two.a.sockets->send(two.link, lane::data, message_of(1, 10));
  BOOST_REQUIRE(two.b.log.wait_for(1));
  const auto end = std::chrono::steady_clock::now() + 600ms; // ten time-outs
  BOOST_REQUIRE(eventually([end] { return std::chrono::steady_clock::now() > end; }));
  BOOST_TEST(two.a.sockets->stats().sessions == 2U);
}

/// Random operations on a link, against a model: what was sent arrives once, and in the order of
/// its lane but for what was asked for.
struct bad_day {
  explicit bad_day(std::uint64_t seed) : random(seed) {}

  void send() {
    const auto where = random.chance(30) ? lane::control : lane::data;
    const bool asked = where == lane::data && random.chance(20);
    const auto most = where == lane::control ? 5000U : random.chance(5) ? 2'000'000U : 50'000U;
    sent.push_back({where, asked});
    two.a.sockets->send(two.link, where, message_of(sent.size() - 1, random.between(0, most)),
                        asked);
  }
  void step() {
    const auto what = random.below(100);
    if (what < 80)
      send();
    else if (what < 84)
      two.proxy.cut_after(random.between(1, 200'000));
    else if (what < 86)
      two.proxy.cut_all();
    else if (what < 88)
      two.proxy.stall(stalled = !stalled);
    else if (what < 92)
      two.b.log.keep(random.chance(50));     // memory is full, or free
    else if (!stalled && !two.b.log.keeps()) // else it may be right that nothing comes
      BOOST_REQUIRE(two.b.log.wait_for(sent.size() * 3 / 4));
  }
  void check() {
    std::vector<int> times(sent.size(), 0);
    std::array<std::uint64_t, 3> last{};
    for (const auto number : two.b.log.numbers()) {
      BOOST_REQUIRE(number < sent.size());
      ++times[number];
      const auto &one = sent[number];
      auto &before = last[one.where == lane::control ? 0 : one.asked ? 1 : 2];
      BOOST_TEST(before < number + 1);
      before = number + 1;
    }
    BOOST_TEST(std::count(times.begin(), times.end(), 1) ==
               static_cast<std::ptrdiff_t>(sent.size()));
  }

  struct sending {
    lane where;
    bool asked;
  };
  random_source random;
  cut_pair two{[](hub_options &o) {
    o.limits.timeout = 200ms;
    o.limits.window_bytes = 1 << 18;
    o.memory_limit = 4 << 20;
  }};
  std::vector<sending> sent;
  bool stalled = false;
};

BOOST_AUTO_TEST_CASE(over_any_bad_day_all_arrives_once_and_in_order) {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    BOOST_TEST_CONTEXT("seed " << seed) {
      bad_day day(seed);
      for (int i = 0; i < 300; ++i)
        day.step();
      day.two.proxy.stall(false);
      day.two.b.log.keep(false);
      BOOST_REQUIRE(day.two.b.log.wait_for(day.sent.size()));
      BOOST_TEST(day.two.a.sockets->stop(10s).empty());
      day.check();
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
