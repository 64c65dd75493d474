// SPDX-License-Identifier: Apache-2.0
#include "actors/scorer/env_config.hpp"

#include <limits>

#include <boost/test/unit_test.hpp>

#include "actors/scorer/algorithm.hpp"

using namespace millrace;

BOOST_AUTO_TEST_SUITE(env_configs)

BOOST_AUTO_TEST_CASE(the_defaults_are_valid_and_have_no_gate) {
  const env_config config;
  BOOST_TEST(config.validate("env.math").empty());
  BOOST_TEST(!config.gate.reject_min.has_value());
}

BOOST_AUTO_TEST_CASE(all_errors_come_at_once_with_their_keys) {
  env_config config;
  config.group_size = 70'000;
  config.algorithm = "gppo";
  config.gate.reject_min = 0;
  config.penalty = {.num_output_tokens_weight = -1,
                    .num_input_tokens_weight = std::numeric_limits<double>::quiet_NaN(),
                    .num_turns_weight = std::numeric_limits<double>::infinity()};
  config.temperature = 0;
  const auto errors = config.validate("env.math");
  BOOST_REQUIRE(errors.size() == 7U);
  BOOST_TEST(errors[0].message.starts_with("env.math.group_size = 70000"));
  BOOST_TEST(errors[1].message ==
             "env.math.algorithm = \"gppo\" is not known: use one of grpo, none");
  BOOST_TEST(errors[2].message.starts_with("env.math.gate.reject_min is set"));
  BOOST_TEST(errors[3].message.starts_with("env.math.length_penalty.num_output_tokens_weight"));
  BOOST_TEST(errors[6].message.starts_with("env.math.temperature = 0"));
}

BOOST_AUTO_TEST_CASE(a_gate_whose_bounds_cross_is_refused) {
  env_config config;
  config.gate = {.reject_min = 0.5, .reject_max = -0.5};
  BOOST_TEST(config.validate("env.math").size() == 1U);
  config.gate = {.reject_min = 0.0, .reject_max = 0.0};
  BOOST_TEST(config.validate("env.math").empty());
}

BOOST_AUTO_TEST_CASE(every_listed_algorithm_is_found) {
  BOOST_TEST(algorithm_names() == "grpo, none");
  BOOST_TEST(find_algorithm("grpo") != nullptr);
  BOOST_TEST(find_algorithm("none") != nullptr);
  BOOST_TEST(find_algorithm("") == nullptr);
}

BOOST_AUTO_TEST_SUITE_END()
