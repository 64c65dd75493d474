// SPDX-License-Identifier: Apache-2.0
#include "actors/scorer/reference_config.hpp"

#include <cmath>

#include <boost/test/unit_test.hpp>

using namespace millrace;

namespace {

std::string joined(const std::vector<error> &errors) {
  std::string out;
  for (const auto &one : errors)
    out += (out.empty() ? "" : " | ") + one.message;
  return out;
}

} // namespace

BOOST_AUTO_TEST_SUITE(reference_configs)

BOOST_AUTO_TEST_CASE(the_defaults_are_fine) {
  BOOST_TEST(joined(model_server{}.validate("env.a.teacher")) == "");
  BOOST_TEST(joined(reference_limits{}.validate("env.a.reference")) == "");
}

BOOST_AUTO_TEST_CASE(a_url_that_is_none_is_named_with_its_key) {
  BOOST_TEST(joined(model_server{"teacher:80", "m"}.validate("env.a.teacher")) ==
             "env.a.teacher.endpoint = 'teacher:80' is not a URL; write http://HOST:PORT");
  BOOST_TEST(joined(model_server{"https://t", "m"}.validate("env.a.policy"))
                 .find("env.a.policy.endpoint = 'https://t': https is not supported") == 0);
}

BOOST_AUTO_TEST_CASE(a_model_without_a_server_is_refused) {
  BOOST_TEST(joined(model_server{"", "m"}.validate("env.a.teacher")) ==
             "env.a.teacher.model is set and env.a.teacher.endpoint is not: set both");
}

BOOST_AUTO_TEST_CASE(all_ranges_are_checked_at_once) {
  BOOST_TEST(joined(reference_limits{0, std::nan(""), 1001}.validate("env.a.reference")) ==
             "env.a.reference.concurrency = 0: it must be from 1 to 1024 | "
             "env.a.reference.timeout = nan: it must be from 0.01 to 86400 | "
             "env.a.reference.retries = 1001: it must be from 0 to 1000");
}

BOOST_AUTO_TEST_SUITE_END()
