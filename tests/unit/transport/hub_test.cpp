// SPDX-License-Identifier: Apache-2.0
#include "transport/hub.hpp"

#include <array>
#include <numeric>

#include <boost/mpl/list.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/support/hubs.hpp"

using namespace millrace;
using namespace millrace::test;
using namespace std::chrono_literals;

namespace {

// One conformance suite for every transport.
struct tcp_ipv4 {
  std::string bind() { return "tcp://127.0.0.1:*"; }
};
struct tcp_ipv6 {
  std::string bind() { return "tcp://[::1]:*"; }
};
struct ipc {
  std::string bind() { return "ipc://" + (folder / fmt::format("s{}", ++last)).string(); }
  temporary_folder folder;
  int last = 0;
};
using transports = boost::mpl::list<tcp_ipv4, tcp_ipv6, ipc>;

/// Two processes, and a link from `a` to `b`.
template <class Transport> struct pair_of {
  explicit pair_of(const std::function<void(hub_options &)> &change = [](hub_options &) {})
      : a(options("a", change)), b(options("b", change)), link(a.sockets->open(b.target())) {}

  hub_options options(const std::string &name, const std::function<void(hub_options &)> &change) {
    auto made = some_options(name, transport.bind());
    change(made);
    return made;
  }

  Transport transport;
  host a, b;
  link_id link;
};

BOOST_AUTO_TEST_SUITE(hubs)

BOOST_AUTO_TEST_CASE_TEMPLATE(messages_arrive_once_and_in_the_order_of_their_lane, Transport,
                              transports) {
  pair_of<Transport> two;
  for (std::uint64_t i = 0; i < 3000; ++i)
    two.a.sockets->send(two.link, i % 3 == 0 ? lane::control : lane::data, numbered(i));
  BOOST_REQUIRE(two.b.log.wait_for(3000));
  std::array<std::vector<std::uint64_t>, 2> seen;
  for (const auto &one : two.b.log.arrivals())
    seen[number_of(one.parts) % 3 == 0].push_back(number_of(one.parts));
  BOOST_TEST(seen[0].size() == 2000U);
  BOOST_TEST(seen[1].size() == 1000U);
  BOOST_TEST(std::is_sorted(seen[0].begin(), seen[0].end()));
  BOOST_TEST(std::is_sorted(seen[1].begin(), seen[1].end()));
  BOOST_TEST(two.b.log.arrivals().front().from.process == "a");
  BOOST_TEST(two.b.sockets->stats().repeats == 0U);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
