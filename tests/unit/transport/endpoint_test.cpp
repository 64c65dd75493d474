// SPDX-License-Identifier: Apache-2.0
#include "transport/endpoint.hpp"

#include <boost/test/unit_test.hpp>

namespace millrace {
namespace {

endpoint parsed(std::string_view text) { return endpoint::parse(text).value(); }

std::string refusal(std::string_view text) {
  const auto got = endpoint::parse(text);
  return got ? "(taken)" : got.error().message;
}

bool mentions(const std::string &message, std::string_view part) {
  return message.find(part) != std::string::npos;
}

BOOST_AUTO_TEST_SUITE(endpoints)

BOOST_AUTO_TEST_CASE(an_endpoint_is_written_as_it_was_read) {
  for (const char *text :
       {"tcp://127.0.0.1:7070", "tcp://10.1.2.3:*", "tcp://[::1]:1", "tcp://[2001:db8::7]:65535",
        "tcp://0.0.0.0:7070", "tcp://[::]:*", "tcp://node-7.cluster_a.example:7070",
        "tcp://localhost:9", "ipc:///run/millrace/x.sock", "ipc://here/x.sock", "ipc://a b:c"})
    BOOST_TEST(parsed(text).text() == text);
}

BOOST_AUTO_TEST_CASE(the_parts_of_a_tcp_endpoint_are_told_apart) {
  const endpoint v6 = parsed("tcp://[2001:db8::7]:80");
  BOOST_TEST(v6.host == "2001:db8::7");
  BOOST_TEST(v6.port == 80U);
  BOOST_TEST(!v6.is_ipc());
  BOOST_TEST(parsed("tcp://node:*").port == 0U);
}

BOOST_AUTO_TEST_CASE(a_star_is_every_ipv4_address) {
  BOOST_TEST(parsed("tcp://*:7").text() == "tcp://0.0.0.0:7");
}

BOOST_AUTO_TEST_CASE(what_is_no_endpoint_is_refused_with_its_text) {
  for (const char *text : {"",
                           "tcp",
                           "tcp:/1.2.3.4:5",
                           "udp://1.2.3.4:5",
                           "1.2.3.4:5",
                           "TCP://1.2.3.4:5",
                           "tcp://",
                           "tcp://:5",
                           "tcp://1.2.3.4",
                           "tcp://1.2.3.4:",
                           "tcp://1.2.3.4:0",
                           "tcp://1.2.3.4:65536",
                           "tcp://1.2.3.4:-1",
                           "tcp://1.2.3.4:5x",
                           "tcp://1.2.3.4:5:6",
                           "tcp://1.2.3:5",
                           "tcp://1.2.3.256:5",
                           "tcp://a b:5",
                           "tcp://a/b:5",
                           "tcp://a@b:5",
                           "tcp://-a:5",
                           "tcp://[::1]",
                           "tcp://[::1:5",
                           "tcp://[1.2.3.4]:5",
                           "tcp://[]:5",
                           "tcp://[node]:5",
                           "tcp://[::g]:5",
                           "ipc://",
                           "ipc://*",
                           "ipc://@name",
                           "ipc:///run/"})
    BOOST_TEST(mentions(refusal(text), text), refusal(text));
}

BOOST_AUTO_TEST_CASE(an_ipv6_address_without_brackets_is_told_where_they_go) {
  BOOST_TEST(mentions(refusal("tcp://::1:5"), "brackets"));
}

BOOST_AUTO_TEST_CASE(a_missing_port_is_told_how_to_write_one) {
  BOOST_TEST(mentions(refusal("tcp://node"), "tcp://node:PORT"));
  BOOST_TEST(mentions(refusal("tcp://[::1]"), "tcp://[::1]:PORT"));
}

BOOST_AUTO_TEST_CASE(a_control_character_does_not_come_back_in_the_message) {
  BOOST_TEST(!mentions(refusal("ipc://a\nb"), "\n"));
  BOOST_TEST(!mentions(refusal(std::string_view("ipc://a\0b", 9)), std::string_view("\0", 1)));
}

BOOST_AUTO_TEST_CASE(an_ipc_path_may_be_as_long_as_the_system_takes_and_no_longer) {
  BOOST_TEST(parsed("ipc://" + std::string(107, 'a')).path.size() == 107U);
  const std::string why = refusal("ipc://" + std::string(108, 'a'));
  BOOST_TEST(mentions(why, "108 bytes"), why);
  BOOST_TEST(mentions(why, "takes 107"), why);
}

BOOST_AUTO_TEST_CASE(a_name_longer_than_any_is_refused) {
  BOOST_TEST(refusal("tcp://" + std::string(253, 'a') + ":5") == "(taken)");
  BOOST_TEST(refusal("tcp://" + std::string(254, 'a') + ":5") != "(taken)");
}

BOOST_AUTO_TEST_CASE(loopback_and_ipc_are_local) {
  for (const char *text : {"tcp://127.0.0.1:5", "tcp://127.9.8.7:*", "tcp://[::1]:5",
                           "tcp://[::ffff:127.0.0.1]:5", "ipc://x.sock", "tcp://localhost:5"})
    BOOST_TEST(parsed(text).is_local(), text);
}

BOOST_AUTO_TEST_CASE(other_addresses_wildcards_and_names_without_address_are_not_local) {
  for (const char *text :
       {"tcp://10.0.0.1:5", "tcp://128.0.0.1:5", "tcp://0.0.0.0:5", "tcp://*:5", "tcp://[::]:5",
        "tcp://[2001:db8::1]:5", "tcp://[::ffff:10.0.0.1]:5", "tcp://no-such-host.invalid:5"})
    BOOST_TEST(!parsed(text).is_local(), text);
}

BOOST_AUTO_TEST_CASE(every_spelling_of_a_wildcard_is_one) {
  for (const char *text : {"tcp://*:5", "tcp://0.0.0.0:*", "tcp://[::]:5", "tcp://[0::0]:5"})
    BOOST_TEST(parsed(text).is_wildcard(), text);
  for (const char *text : {"tcp://127.0.0.1:5", "tcp://[::1]:5", "tcp://node:5", "ipc://x"})
    BOOST_TEST(!parsed(text).is_wildcard(), text);
}

BOOST_AUTO_TEST_CASE(only_ipv4_addresses_and_ipc_do_without_ipv6) {
  for (const char *text : {"tcp://[::1]:5", "tcp://node:5"})
    BOOST_TEST(parsed(text).wants_ipv6(), text);
  for (const char *text : {"tcp://*:5", "tcp://10.0.0.1:*", "ipc://x"})
    BOOST_TEST(!parsed(text).wants_ipv6(), text);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(addresses_for_others)

const std::vector<interface_address> both{
    {"2001:db8::5", true}, {"172.17.0.1", false}, {"10.0.0.5", false}};

std::string chosen(const std::vector<interface_address> &own, bool ipv6,
                   const std::vector<std::string> &of_name = {}) {
  const auto got = choose_address(own, of_name, ipv6);
  return got ? *got : got.error().message;
}

BOOST_AUTO_TEST_CASE(the_first_address_of_the_family_is_given) {
  BOOST_TEST(chosen(both, false) == "172.17.0.1");
  BOOST_TEST(chosen(both, true) == "2001:db8::5");
}

BOOST_AUTO_TEST_CASE(an_address_that_the_machines_name_stands_for_is_preferred) {
  BOOST_TEST(chosen(both, false, {"10.0.0.5"}) == "10.0.0.5");
}

BOOST_AUTO_TEST_CASE(a_name_that_stands_for_loopback_or_another_machine_is_not_followed) {
  BOOST_TEST(chosen(both, false, {"127.0.1.1", "::1", "192.0.2.9"}) == "172.17.0.1");
}

BOOST_AUTO_TEST_CASE(an_ipv6_wildcard_takes_ipv4_if_there_is_nothing_else) {
  BOOST_TEST(chosen({{"10.0.0.5", false}}, true) == "10.0.0.5");
  BOOST_TEST(chosen(both, true, {"10.0.0.5"}) == "2001:db8::5");
}

BOOST_AUTO_TEST_CASE(an_ipv4_wildcard_never_takes_ipv6) {
  BOOST_TEST(mentions(chosen({{"2001:db8::5", true}}, false), "set link.advertise"));
}

BOOST_AUTO_TEST_CASE(no_address_at_all_names_the_key_to_set) {
  BOOST_TEST(mentions(chosen({}, true), "set link.advertise"));
}

BOOST_AUTO_TEST_CASE(the_machines_own_addresses_are_never_loopback) {
  for (const auto &each : reachable_addresses()) {
    const endpoint reached{endpoint::protocol::tcp, each.address, 5, ""};
    BOOST_TEST(!reached.is_local(), each.address);
    BOOST_TEST(parsed(reached.text()).host == each.address);
  }
}

BOOST_AUTO_TEST_CASE(a_bound_address_is_advertised_as_it_is) {
  for (const char *text : {"tcp://10.0.0.5:81", "tcp://[2001:db8::5]:81", "tcp://127.0.0.1:81"})
    BOOST_TEST(advertised(parsed(text), "").value().text() == text);
}

BOOST_AUTO_TEST_CASE(a_host_that_is_given_takes_the_place_of_the_bound_one) {
  const endpoint bound = parsed("tcp://0.0.0.0:81");
  BOOST_TEST(advertised(bound, "node-7").value().text() == "tcp://node-7:81");
  BOOST_TEST(advertised(bound, "2001:db8::5").value().text() == "tcp://[2001:db8::5]:81");
  BOOST_TEST(advertised(bound, "[2001:db8::5]").value().text() == "tcp://[2001:db8::5]:81");
  BOOST_TEST(advertised(parsed("tcp://10.0.0.5:81"), "192.0.2.1").value().text() ==
             "tcp://192.0.2.1:81");
}

BOOST_AUTO_TEST_CASE(what_nobody_can_reach_is_not_advertised) {
  for (const char *host : {"*", "0.0.0.0", "::", "[::]", "node:81", "tcp://node", "a b", "1.2.3"})
    BOOST_TEST(mentions(advertised(parsed("tcp://*:81"), host).error().message, "link.advertise"),
               host);
}

BOOST_AUTO_TEST_CASE(a_wildcard_is_advertised_as_an_address_of_this_machine) {
  const auto got = advertised(parsed("tcp://0.0.0.0:81"), "");
  if (!got) { // a machine without a network
    BOOST_TEST(mentions(got.error().message, "set link.advertise"));
    return;
  }
  BOOST_TEST(!got->is_wildcard());
  BOOST_TEST(!got->is_local());
  BOOST_TEST(got->port == 81U);
}

BOOST_AUTO_TEST_CASE(an_ipc_path_is_advertised_whole) {
  BOOST_TEST(advertised(parsed("ipc:///run/./x.sock"), "node").value().path == "/run/x.sock");
  BOOST_TEST(advertised(parsed("ipc://x.sock"), "").value().path.starts_with('/'));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
} // namespace millrace
