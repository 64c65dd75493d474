// SPDX-License-Identifier: Apache-2.0
#include "transport/http_url.hpp"

#include <boost/test/unit_test.hpp>

using namespace millrace;

namespace {

std::string text_of(std::string_view url) {
  const auto parsed = http_url::parse(url);
  return parsed ? parsed->text() : parsed.error().message;
}

} // namespace

BOOST_AUTO_TEST_SUITE(http_urls)

BOOST_AUTO_TEST_CASE(host_port_and_prefix_are_told_apart) {
  const auto url = http_url::parse("http://teacher-0.local:8000/models/a").value();
  BOOST_TEST(url.host == "teacher-0.local");
  BOOST_TEST(url.port == 8000);
  BOOST_TEST(url.prefix == "/models/a");
}

BOOST_AUTO_TEST_CASE(the_port_is_80_unless_it_is_said) {
  BOOST_TEST(text_of("http://host") == "http://host:80");
}

BOOST_AUTO_TEST_CASE(ipv6_stands_in_brackets) {
  BOOST_TEST(http_url::parse("http://[::1]:8000").value().host == "::1");
  BOOST_TEST(text_of("http://[::1]:8000") == "http://[::1]:8000");
  BOOST_TEST(text_of("http://[::1]") == "http://[::1]:80");
}

BOOST_AUTO_TEST_CASE(the_base_url_of_other_clients_is_taken_too) {
  for (const char *end : {"", "/", "/v1", "/v1/"})
    BOOST_TEST(text_of(std::string("http://h:1") + end) == "http://h:1");
}

BOOST_AUTO_TEST_CASE(https_is_refused_with_what_to_do) {
  const auto url = http_url::parse("https://host");
  BOOST_TEST((url.error().code == errc::unsupported));
  BOOST_TEST(url.error().message.find("'https://host': https is not supported; use http") == 0);
}

BOOST_AUTO_TEST_CASE(what_is_no_url_is_refused_with_its_text) {
  for (const char *url : {"", "host:80", "ftp://host", "http://", "http://:80",
                          "http://host:", "http://host:0", "http://host:65536", "http://host:80x",
                          "http://user@host", "http://host/a?b", "http://[::1", "http://[::1]8000",
                          "http://a b", "http://host/\r\nX: y", "http://host#x", "http://[]:80"}) {
    const auto parsed = http_url::parse(url);
    BOOST_TEST_CONTEXT(url) {
      BOOST_REQUIRE(!parsed);
      BOOST_TEST((parsed.error().code == errc::bad_argument));
      BOOST_TEST(parsed.error().message.find(fmt::format("'{}'", url)) == 0);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
