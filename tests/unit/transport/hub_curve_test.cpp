// SPDX-License-Identifier: Apache-2.0
// Hubs with CURVE keys, and hubs that would need some.
#include "transport/hub.hpp"

#include <boost/mpl/list.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/support/hubs.hpp"
#include "tests/support/raw_peer.hpp"
#include "tests/support/transports.hpp"
#include "transport/client.hpp"

using namespace millrace;
using namespace millrace::test;
using namespace std::chrono_literals;

namespace {

/// Key pairs of two processes and of somebody else.
struct keys_of_all {
  keys_of_all()
      : a(make_keys(folder / "a").value()), b(make_keys(folder / "b").value()),
        other(make_keys(folder / "other").value()) {}

  temporary_folder folder;
  curve_keys a, b, other;
};

hub_options with_keys(const std::string &process, const std::string &bind, const curve_keys &mine,
                      const std::vector<allowed_peer> &allowed) {
  auto options = some_options(process, bind);
  options.curve = curve_config{.mine = mine, .allowed = allowed};
  return options;
}

using transports = boost::mpl::list<tcp_ipv4, tcp_ipv6, ipc>;

BOOST_AUTO_TEST_SUITE(hubs_with_keys)

BOOST_AUTO_TEST_CASE_TEMPLATE(known_keys_come_in, Transport, transports) {
  Transport transport;
  const keys_of_all keys;
  host b(with_keys("b", transport.bind(), keys.b, {{keys.a.public_key, {"scorer"}, "a"}}));
  host a(with_keys("a", transport.bind(), keys.a, {}));
  const auto link = a.sockets->open(b.target());
  a.sockets->send(link, lane::data, {some_bytes(1 << 20, 1)});
  a.sockets->send(link, lane::control, numbered(1));
  BOOST_TEST(b.log.wait_for(2));
  BOOST_TEST(a.sockets->stop(10s).empty());
}

BOOST_AUTO_TEST_CASE(an_unknown_key_is_counted_and_told_so) {
  const keys_of_all keys;
  host b(with_keys("b", "tcp://127.0.0.1:*", keys.b, {{keys.other.public_key, {"*"}, "*"}}));
  host a(with_keys("a", "tcp://127.0.0.1:*", keys.a, {}));
  a.sockets->open(b.target());
  BOOST_REQUIRE(a.log.wait_for_state(link_state::down));
  BOOST_TEST(eventually([&b] { return b.sockets->stats().auth_failures > 0; }));
  BOOST_TEST_MESSAGE(a.log.why(link_state::down));
  BOOST_TEST(a.log.why(link_state::down).find("does not let this process's key in") !=
             std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_wrong_server_key_is_counted) {
  const keys_of_all keys;
  host b(with_keys("b", "tcp://127.0.0.1:*", keys.b, {{keys.a.public_key, {"*"}, "*"}}));
  host a(with_keys("a", "tcp://127.0.0.1:*", keys.a, {}));
  auto target = b.target();
  target.key = keys.other.public_key;
  a.sockets->open(target);
  BOOST_TEST(eventually([&b] { return b.sockets->stats().auth_failures > 0; }));
}

BOOST_AUTO_TEST_CASE(who_has_no_keys_stays_out) {
  const keys_of_all keys;
  host b(with_keys("b", "tcp://127.0.0.1:*", keys.b, {{keys.a.public_key, {"*"}, "*"}}));
  raw_peer bad(b.sockets->endpoint());
  bad.send_bytes(some_bytes(100, 1));
  BOOST_TEST(eventually([&b] { return b.sockets->stats().auth_failures > 0; }));
  BOOST_TEST(b.sockets->stats().garbage == 0U);
}

BOOST_AUTO_TEST_CASE(a_key_is_let_in_under_its_name_and_roles_only) {
  const keys_of_all keys;
  host b(
      with_keys("b", "tcp://127.0.0.1:*", keys.b,
                {{keys.a.public_key, {"scorer"}, "a"}, {keys.other.public_key, {"packer"}, "*"}}));
  host other_name(with_keys("c", "tcp://127.0.0.1:*", keys.a, {}));
  other_name.sockets->open(b.target());
  BOOST_REQUIRE(other_name.log.wait_for_state(link_state::refused));
  BOOST_TEST(other_name.log.why(link_state::refused) ==
             "process 'b' says: its key may not be process 'c' with roles 'scorer'; see the "
             "`allowed` file");
  host other_role(with_keys("c", "tcp://127.0.0.1:*", keys.other, {}));
  other_role.sockets->open(b.target());
  BOOST_TEST(other_role.log.wait_for_state(link_state::refused));
  BOOST_TEST(b.sockets->stats().refusals == 2U);
}

BOOST_AUTO_TEST_CASE(a_question_is_answered_with_keys) {
  const keys_of_all keys;
  host b(with_keys("b", "tcp://127.0.0.1:*", keys.b, {{keys.a.public_key, {"*"}, "*"}}));
  std::thread answers([&b] {
    for (const auto &[id, parts] : b.log.wait_for_questions(1))
      b.sockets->answer(id, numbered(number_of(parts) + 1));
  });
  const auto answer = ask(b.sockets->endpoint(), keys.b.public_key,
                          curve_config{.mine = keys.a, .allowed = {}}, "run", numbered(1), 10s);
  answers.join();
  BOOST_REQUIRE_MESSAGE(answer, answer.error().message);
  BOOST_TEST(number_of(*answer) == 2U);
}

BOOST_AUTO_TEST_CASE(an_open_address_without_keys_is_refused_unless_insecure) {
  hub_log log;
  auto options = some_options("a", "tcp://0.0.0.0:*");
  const auto refused = hub::start(options, log);
  BOOST_REQUIRE(!refused);
  BOOST_TEST((refused.error().code == errc::bad_argument));
  BOOST_TEST(refused.error().message ==
             "'tcp://0.0.0.0:*' can be reached from other machines: give keys (millrace keygen), "
             "or set insecure = true if you trust everyone there");
  options.insecure = true;
  options.advertise = "node-7";
  const auto open = hub::start(options, log);
  BOOST_REQUIRE(open);
  BOOST_TEST((*open)->endpoint().starts_with("tcp://node-7:"));
}

BOOST_AUTO_TEST_CASE(what_cannot_be_bound_is_named) {
  host a(some_options("a", "tcp://127.0.0.1:*"));
  hub_log log;
  const auto twice = hub::start(some_options("b", a.sockets->endpoint()), log);
  BOOST_REQUIRE(!twice);
  BOOST_TEST(twice.error().message ==
             fmt::format("cannot bind '{}': Address already in use", a.sockets->endpoint()));
  BOOST_TEST(!hub::start(some_options("b", "nonsense"), log));
  BOOST_TEST(!hub::start(some_options("", "tcp://127.0.0.1:*"), log));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
