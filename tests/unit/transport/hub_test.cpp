// SPDX-License-Identifier: Apache-2.0
#include "transport/hub.hpp"

#include <array>
#include <cstdint>

#include <boost/mpl/list.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/support/hubs.hpp"
#include "tests/support/transports.hpp"

using namespace millrace;
using namespace millrace::test;
using namespace std::chrono_literals;

namespace {

using transports = boost::mpl::list<tcp_ipv4, tcp_ipv6, ipc>; // one conformance suite for all

using change_options = std::function<void(hub_options &)>;
const change_options as_they_are = [](hub_options &) {};

/// Two processes, and a link from `a` to `b`.
template <class Transport> struct pair_of {
  explicit pair_of(const change_options &of_a = as_they_are,
                   const change_options &of_b = as_they_are)
      : a(options("a", of_a)), b(options("b", of_b)), link(a.sockets->open(b.target())) {}

  hub_options options(const std::string &name, const change_options &change) {
    auto made = some_options(name, transport.bind());
    change(made);
    return made;
  }
  void send(lane where, message parts, bool asked_for = false) {
    a.sockets->send(link, where, std::move(parts), asked_for);
  }
  /// The next start of `b`, at the same place.
  hub_options restarted_b() {
    auto again = b.options;
    again.bind = b.sockets->endpoint();
    ++again.self.incarnation;
    b.sockets.reset();
    return again;
  }

  Transport transport;
  host a, b;
  link_id link;
};

/// Parts of all sizes that are special to somebody: libzmq, our copies, pages.
message parts_of_all_sizes() {
  message parts;
  for (const std::size_t size :
       std::initializer_list<std::size_t>{0, 1, 8, 33, 34, 63, 64, 65, 1000, 8191, 8192, 8193,
                                          65'536, 1 << 20, (16 << 20) + 1, 64 << 20})
    parts.push_back(some_bytes(size, size + 1));
  return parts;
}

BOOST_AUTO_TEST_SUITE(hubs)

BOOST_AUTO_TEST_CASE_TEMPLATE(messages_arrive_once_and_in_the_order_of_their_lane, Transport,
                              transports) {
  pair_of<Transport> two;
  for (std::uint64_t i = 0; i < 3000; ++i)
    two.send(i % 3 == 0 ? lane::control : lane::data, numbered(i));
  BOOST_REQUIRE(two.b.log.wait_for(3000));
  std::array<std::vector<std::uint64_t>, 2> seen;
  for (const auto number : two.b.log.numbers())
    seen[number % 3 == 0].push_back(number);
  BOOST_TEST(seen[0].size() == 2000U);
  BOOST_TEST(seen[1].size() == 1000U);
  BOOST_TEST(std::is_sorted(seen[0].begin(), seen[0].end()));
  BOOST_TEST(std::is_sorted(seen[1].begin(), seen[1].end()));
  BOOST_TEST(two.b.log.arrivals().front().from.process == "a");
  BOOST_TEST(two.b.sockets->stats().repeats == 0U);
  BOOST_TEST(two.a.sockets->stats().sessions == 2U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(parts_of_all_sizes_arrive_intact_and_aligned, Transport, transports) {
  pair_of<Transport> two;
  const auto sent = parts_of_all_sizes();
  two.send(lane::data, sent);
  BOOST_REQUIRE(two.b.log.wait_for(1));
  const auto got = two.b.log.arrivals().front().parts;
  BOOST_REQUIRE(got.size() == sent.size());
  for (std::size_t i = 0; i < sent.size(); ++i) {
    BOOST_TEST_CONTEXT("part " << i << " of " << sent[i].size() << " bytes") {
      BOOST_TEST(same(got[i], sent[i]));
      BOOST_TEST(reinterpret_cast<std::uintptr_t>(got[i].data()) % 8 == 0U);
    }
  }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(both_directions_work_at_once, Transport, transports) {
  pair_of<Transport> two;
  const auto back = two.b.sockets->open(two.a.target());
  for (std::uint64_t i = 0; i < 500; ++i) {
    two.send(lane::data, numbered(i));
    two.b.sockets->send(back, lane::data, numbered(i));
  }
  BOOST_TEST(two.b.log.wait_for(500));
  BOOST_TEST(two.a.log.wait_for(500));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(received_bytes_are_held_until_the_last_frame_is_gone, Transport,
                              transports) {
  pair_of<Transport> two;
  two.send(lane::data, {some_bytes(100'000, 1), some_bytes(100, 2)});
  BOOST_REQUIRE(two.b.log.wait_for(1));
  auto part = two.b.log.arrivals().front().parts[0].sub(50, 10);
  BOOST_TEST(two.b.options.memory->held == 100'100U);
  two.b.log.forget();
  BOOST_TEST(two.b.options.memory->held == 100'000U);
  part = {};
  BOOST_TEST(two.b.options.memory->held == 0U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_sent_frame_is_let_go_when_it_was_received, Transport, transports) {
  pair_of<Transport> two;
  const auto alive = std::make_shared<int>(1);
  const auto bytes = some_bytes(1 << 20, 1);
  two.send(lane::data, {frame(std::shared_ptr<const void>(alive), bytes.bytes())});
  BOOST_REQUIRE(two.b.log.wait_for(1));
  BOOST_TEST(eventually([&alive] { return alive.use_count() == 1; }));
  BOOST_TEST(eventually([&two] { return two.a.sockets->stats().in_flight_bytes == 0; }));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(credit_stops_a_sender_at_the_limit, Transport, transports) {
  constexpr std::uint64_t limit = 1 << 20;
  pair_of<Transport> two(as_they_are, [](hub_options &o) { o.memory_limit = limit; });
  for (std::uint64_t i = 0; i < 100; ++i)
    two.send(lane::data, {some_bytes(50'000, i)});
  BOOST_REQUIRE(two.b.log.wait_for(10));
  BOOST_REQUIRE(eventually([&two] { return two.b.options.memory->held > limit - 50'000; }));
  BOOST_TEST(!two.a.sockets->can_take(two.link));
  BOOST_TEST(two.a.sockets->room(two.link) < 0);
  two.send(lane::control, numbered(1)); // what waits for credit holds nobody else up
  BOOST_REQUIRE(two.b.log.wait_for(21));
  BOOST_TEST(two.b.log.count() == 21U);
  BOOST_TEST(eventually([&two] {
    two.b.log.forget();
    return two.b.log.count() == 101;
  }));
  BOOST_TEST(two.b.options.memory->held_peak <= limit);
  BOOST_TEST(two.a.log.wait_for_room(1));
  BOOST_TEST(two.a.sockets->can_take(two.link));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_message_larger_than_the_window_and_the_limit_passes, Transport,
                              transports) {
  pair_of<Transport> two(as_they_are, [](hub_options &o) {
    o.memory_limit = 1 << 20;
    o.limits.window_bytes = 1 << 16;
  });
  two.b.log.keep(false); // what comes is let go at once
  for (std::uint64_t i = 0; i < 5; ++i)
    two.send(lane::data, {some_bytes(4 << 20, i)});
  BOOST_TEST(two.b.log.wait_for(5));
  BOOST_TEST(two.b.options.memory->held_peak <= std::uint64_t{4} << 20);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(what_was_asked_for_needs_no_credit, Transport, transports) {
  pair_of<Transport> two(as_they_are, [](hub_options &o) { o.memory_limit = 1000; });
  two.send(lane::data, {some_bytes(2000, 1)});
  BOOST_REQUIRE(two.b.log.wait_for(1)); // is kept: no credit for others
  two.send(lane::data, {some_bytes(3000, 2)});
  two.send(lane::data, {some_bytes(4000, 3)}, true);
  BOOST_REQUIRE(two.b.log.wait_for(2));
  BOOST_TEST(two.b.log.arrivals()[1].parts[0].size() == 4000U);
  two.b.log.forget();
  BOOST_TEST(two.b.log.wait_for(3));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(hunger_goes_over_the_limit_and_is_counted, Transport, transports) {
  pair_of<Transport> two(as_they_are, [](hub_options &o) { o.memory_limit = 1000; });
  two.send(lane::data, {some_bytes(2000, 1)});
  BOOST_REQUIRE(two.b.log.wait_for(1));
  two.send(lane::data, {some_bytes(3000, 2)});
  two.send(lane::data, {some_bytes(4000, 3)});
  two.send(lane::control, numbered(1));
  BOOST_REQUIRE(two.b.log.wait_for(2));
  BOOST_TEST(two.b.log.count() == 2U);
  two.b.sockets->set_hungry(true);
  BOOST_TEST(two.b.log.wait_for(4));
  BOOST_TEST(two.b.sockets->stats().over_limit_bytes == 7000U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_peer_has_room_before_the_first_message, Transport, transports) {
  pair_of<Transport> two;
  BOOST_TEST(eventually([&two] { return two.a.sockets->room(two.link) > 0; }));
  BOOST_TEST(two.a.sockets->can_take(two.link));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_link_to_nobody_is_down_with_a_reason_and_takes_one_message,
                              Transport, transports) {
  pair_of<Transport> two;
  const auto nobody = two.restarted_b().bind; // nobody is there any more
  const auto begin = std::chrono::steady_clock::now();
  const auto lonely = two.a.sockets->open({.process = "c", .endpoint = nobody});
  BOOST_REQUIRE(eventually([&] {
    const auto changes = two.a.log.changes();
    return std::any_of(changes.begin(), changes.end(), [&](const hub_log::change &one) {
      return one.link == lonely && one.state == link_state::down;
    });
  }));
  BOOST_TEST((std::chrono::steady_clock::now() - begin < two.a.options.limits.timeout / 2));
  BOOST_TEST(two.a.sockets->can_take(lonely));
  two.a.sockets->send(lonely, lane::data, numbered(1));
  BOOST_TEST(!two.a.sockets->can_take(lonely));
  two.a.sockets->close(lonely);
  BOOST_TEST(!two.a.sockets->can_take(lonely));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_receiver_that_starts_late_gets_everything, Transport, transports) {
  pair_of<Transport> two;
  const auto later = two.restarted_b();
  const auto link = two.a.sockets->open({.process = "b", .endpoint = later.bind});
  for (std::uint64_t i = 0; i < 10; ++i)
    two.a.sockets->send(link, lane::data, numbered(i));
  host b(later);
  BOOST_TEST(b.log.wait_for(10));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_receiver_that_was_started_again_is_another_one, Transport,
                              transports) {
  pair_of<Transport> two;
  two.send(lane::data, numbered(1));
  BOOST_REQUIRE(two.b.log.wait_for(1));
  host again(two.restarted_b());
  two.send(lane::data, numbered(2));
  BOOST_REQUIRE(two.a.log.wait_for_state(link_state::replaced));
  BOOST_TEST(two.a.log.why(link_state::replaced) ==
             "process 'b' was started again: incarnation 2, it was 1");
  BOOST_TEST(again.log.count() == 0U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_sender_that_was_started_again_is_a_new_one, Transport, transports) {
  pair_of<Transport> two;
  two.send(lane::data, numbered(1));
  BOOST_REQUIRE(two.b.log.wait_for(1));
  auto again = two.a.options;
  again.bind = two.transport.bind();
  again.self.incarnation = 2;
  two.a.sockets.reset();
  const host a2(again);
  a2.sockets->send(a2.sockets->open(two.b.target()), lane::data, numbered(1));
  BOOST_REQUIRE(two.b.log.wait_for(2));
  BOOST_TEST(two.b.log.arrivals()[1].from.incarnation == 2U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(of_two_incarnations_the_older_is_superseded, Transport, transports) {
  pair_of<Transport> two;
  two.send(lane::data, numbered(1));
  BOOST_REQUIRE(two.b.log.wait_for(1));
  auto newer = two.a.options;
  newer.bind = two.transport.bind();
  newer.self.incarnation = 2;
  const host a2(newer);
  a2.sockets->send(a2.sockets->open(two.b.target()), lane::data, numbered(2));
  BOOST_REQUIRE(two.a.log.wait_for_state(link_state::refused));
  BOOST_TEST(two.a.log.why(link_state::refused) ==
             "process 'b' says: superseded: incarnation 2 of it came after 1");
  BOOST_REQUIRE(two.b.log.wait_for(2));
  const auto old = two.a.sockets->open(two.b.target());
  BOOST_TEST(eventually([&] {
    const auto changes = two.a.log.changes();
    return changes.back().link == old && changes.back().state == link_state::refused;
  }));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(another_run_and_another_config_are_refused_by_name, Transport,
                              transports) {
  pair_of<Transport> two([](hub_options &o) { o.self.run = "other"; });
  BOOST_REQUIRE(two.a.log.wait_for_state(link_state::refused));
  BOOST_TEST(two.a.log.why(link_state::refused) ==
             "process 'b' says: this is run 'run', it belongs to run 'other'");
  pair_of<Transport> more([](hub_options &o) { o.self.config = "beef"; });
  BOOST_REQUIRE(more.a.log.wait_for_state(link_state::refused));
  BOOST_TEST(more.a.log.why(link_state::refused) ==
             "process 'b' says: its config differs: digest 'c0ffee' here, 'beef' there; start all "
             "processes with one config");
  BOOST_TEST(more.b.sockets->stats().refusals == 1U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_link_that_is_opened_again_goes_on, Transport, transports) {
  pair_of<Transport> two;
  for (std::uint64_t round = 1; round <= 3; ++round) {
    two.send(lane::data, numbered(round));
    two.send(lane::control, numbered(round));
    BOOST_REQUIRE(two.b.log.wait_for(2 * round));
    two.a.sockets->close(two.link);
    two.link = two.a.sockets->open(two.b.target());
  }
  BOOST_TEST(two.b.sockets->stats().garbage == 0U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(stop_waits_until_everything_was_received, Transport, transports) {
  pair_of<Transport> two;
  for (std::uint64_t i = 0; i < 1000; ++i)
    two.send(lane::data, {some_bytes(10'000, i)});
  BOOST_TEST(two.a.sockets->stop(10s).empty());
  BOOST_TEST(two.b.log.count() == 1000U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(stop_returns_by_its_deadline_and_counts_what_a_dead_peer_lacks,
                              Transport, transports) {
  pair_of<Transport> two;
  two.send(lane::data, {some_bytes(100, 0)});
  BOOST_REQUIRE(two.b.log.wait_for(1));
  BOOST_REQUIRE(eventually([&two] { return two.a.sockets->stats().in_flight_bytes == 0; }));
  two.b.sockets.reset();
  for (std::uint64_t i = 0; i < 1000; ++i)
    two.send(lane::data, {some_bytes(100, i)});
  const auto begin = std::chrono::steady_clock::now();
  const auto left = two.a.sockets->stop(100ms);
  BOOST_TEST((std::chrono::steady_clock::now() - begin < 2s));
  BOOST_REQUIRE(left.size() == 1U);
  BOOST_TEST(left[0].process == "b");
  BOOST_TEST(left[0].messages == 1000U);
  BOOST_TEST(left[0].bytes == 100'000U);
  two.send(lane::data, numbered(1)); // does nothing
  BOOST_TEST(two.a.sockets->stop(1s).empty());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_receiver_that_stalls_loses_nothing, Transport, transports) {
  // Its thread stands still for longer than the time-out: both sessions are renewed meanwhile.
  struct stalling final : hub_listener {
    void received(const process_identity &, message) override {
      if (++count == 10)
        eventually([this] { return go_on.load(); });
    }
    void asked(request_id, message) override {}
    void link_changed(link_id, link_state, const std::string &) override {}
    void room_came(link_id) override {}
    std::atomic<int> count{0};
    std::atomic<bool> go_on{false};
  };
  Transport transport;
  stalling log;
  const auto b = hub::start(some_options("b", transport.bind()), log).value();
  auto options = some_options("a", transport.bind());
  options.limits.timeout = 100ms;
  host a(options);
  const auto link = a.sockets->open({.process = "b", .endpoint = b->endpoint()});
  for (std::uint64_t i = 0; i < 1000; ++i)
    a.sockets->send(link, i % 2 == 0 ? lane::data : lane::control, {some_bytes(1000, i)});
  BOOST_REQUIRE(eventually([&log] { return log.count == 10; }));
  BOOST_REQUIRE(eventually([&a] { return a.sockets->stats().sessions > 4; }));
  log.go_on = true;
  BOOST_TEST(a.sockets->stop(10s).empty());
  BOOST_TEST(log.count == 1000);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
