// SPDX-License-Identifier: Apache-2.0
#include "actors/scorer/env_config.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <boost/test/unit_test.hpp>

#include "actors/scorer/algorithm.hpp"

using namespace millrace;

namespace {

std::vector<std::string> problems_of(const env_config &config, const env_config &base = {}) {
  std::vector<std::string> out;
  for (const auto &problem : config.validate("env.math", base))
    out.push_back(problem.message);
  return out;
}

/// The one problem that there is.
std::string problem_of(const env_config &config, const env_config &base = {}) {
  const auto all = problems_of(config, base);
  BOOST_TEST(all.size() == 1U);
  return all.empty() ? "" : all.front();
}

/// A valid config of an algorithm.
env_config config_of(const std::string &algorithm) {
  env_config out;
  out.algorithm = algorithm;
  if (algorithm == "echo")
    out.echo.roles = {{"tool", 0.1}};
  if (algorithm == "sft")
    out.sampler = sampler_kind::frozen;
  if (algorithm == "opd" || algorithm == "opsd")
    out.teacher.endpoint = "http://t:8000";
  return out;
}

const std::vector<std::string> names{
    "grpo", "hierarchical_grpo", "max_rl", "rae", "echo", "sft", "opd", "opsd", "none"};

} // namespace

BOOST_AUTO_TEST_SUITE(env_configs)

BOOST_AUTO_TEST_CASE(the_defaults_are_valid_and_have_no_gate) {
  const env_config config;
  BOOST_TEST(problems_of(config).empty());
  BOOST_TEST(!config.gate.reject_min.has_value());
}

BOOST_AUTO_TEST_CASE(every_algorithm_has_a_valid_config) {
  for (const auto &name : names)
    BOOST_TEST(problems_of(config_of(name)).empty(), name);
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
  config.decay = 1;
  config.echo.roles = {{"tool", -0.5}};
  const auto errors = problems_of(config);
  BOOST_REQUIRE(errors.size() == 9U);
  BOOST_TEST(errors[0].starts_with("env.math.group_size = 70000"));
  BOOST_TEST(errors[1].starts_with("env.math.length_penalty.num_output_tokens_weight"));
  BOOST_TEST(errors[4].starts_with("env.math.temperature = 0"));
  BOOST_TEST(errors[5].starts_with("env.math.echo.roles.tool = -0.5"));
  BOOST_TEST(errors[6] == "env.math.decay = 1: it must be at least 0 and below 1");
  BOOST_TEST(errors[7].starts_with("env.math.gate.reject_min is set"));
  BOOST_TEST(errors[8] ==
             "env.math.algorithm = \"gppo\" is not known: use one of " + algorithm_names());
}

BOOST_AUTO_TEST_CASE(a_gate_whose_bounds_cross_is_refused) {
  env_config config;
  config.gate = {.reject_min = 0.5, .reject_max = -0.5};
  BOOST_TEST(problems_of(config).size() == 1U);
  config.gate = {.reject_min = 0.0, .reject_max = 0.0};
  BOOST_TEST(problems_of(config).empty());
}

BOOST_AUTO_TEST_CASE(a_group_of_one_is_refused_where_groups_are_compared) {
  for (const auto &name : names) {
    auto config = config_of(name);
    config.group_size = 1;
    if (find_algorithm(name)->group_relative)
      BOOST_TEST(problem_of(config).starts_with("env.math.group_size = 1: " + name), name);
    else
      BOOST_TEST(problems_of(config).empty(), name);
  }
}

BOOST_AUTO_TEST_CASE(an_option_of_another_algorithm_is_refused_and_its_owner_named) {
  using change = void (*)(env_config &);
  struct option {
    std::string key;
    std::vector<std::string> owners;
    change set;
  };
  const std::vector<option> options{
      {"length_penalty", {"grpo", "echo"}, [](auto &c) { c.penalty.num_turns_weight = 1; }},
      {"length_weighted_baseline",
       {"grpo", "echo"},
       [](auto &c) { c.length_weighted_baseline = true; }},
      {"loss_aggregation",
       {"grpo", "echo"},
       [](auto &c) { c.aggregation = loss_aggregation::prompt; }},
      {"episode_agents", {"hierarchical_grpo"}, [](auto &c) { c.episode_agents = {"a"}; }},
      {"decay", {"rae"}, [](auto &c) { c.decay = 0.5; }},
      {"echo.roles",
       {"echo"},
       [](auto &c) {
         c.echo.roles = {{"user", 1}};
       }},
      {"teacher.endpoint", {"opd", "opsd"}, [](auto &c) { c.teacher.endpoint = "http://x:1"; }},
      {"teacher.model", {"opd", "opsd"}, [](auto &c) { c.teacher.model = "m"; }},
      {"reference", {"opd", "opsd"}, [](auto &c) { c.reference.retries = 0; }}};
  for (const auto &[key, owners, set] : options)
    for (const auto &name : names) {
      auto config = config_of(name);
      set(config);
      if (std::find(owners.begin(), owners.end(), name) != owners.end()) {
        BOOST_TEST(problems_of(config).empty(), name << " " << key);
        continue;
      }
      const auto problem = problem_of(config);
      BOOST_TEST(problem.starts_with("env.math." + key + " is an option of " + owners.front()),
                 problem);
      BOOST_TEST(problem.find("env.math.algorithm is " + name) != std::string::npos, problem);
      // What it has from env_default is nobody's fault.
      BOOST_TEST(problems_of(config, config).empty(), name << " " << key);
    }
}

BOOST_AUTO_TEST_CASE(a_loss_that_contradicts_the_algorithm_is_refused) {
  for (const auto &name : names)
    for (const auto loss : {action_loss::rl, action_loss::ce, action_loss::ref_kl}) {
      auto config = config_of(name);
      const auto own = config.loss();
      config.action_loss_type = loss;
      if (loss == own || own == action_loss::rl)
        BOOST_TEST(problems_of(config).empty(), name);
      else
        BOOST_TEST(problem_of(config).starts_with("env.math.action_loss_type = "), name);
    }
}

BOOST_AUTO_TEST_CASE(a_teacher_is_needed_where_a_reference_scores) {
  for (const std::string name : {"opd", "opsd"}) {
    env_config config;
    config.algorithm = name;
    BOOST_TEST(problem_of(config) == "env.math.teacher.endpoint is not set: " + name +
                                         " needs a model server that scores its tokens");
  }
}

BOOST_AUTO_TEST_CASE(a_teacher_that_is_no_url_is_refused_with_what_is_wrong) {
  auto config = config_of("opd");
  config.teacher.endpoint = "teacher:80";
  BOOST_TEST(problem_of(config) ==
             "env.math.teacher.endpoint = 'teacher:80' is not a URL; write http://HOST:PORT");
  config.teacher.endpoint = "https://teacher";
  BOOST_TEST(problem_of(config).starts_with(
      "env.math.teacher.endpoint = 'https://teacher': https is not supported"));
}

BOOST_AUTO_TEST_CASE(all_bounds_of_reference_requests_are_checked_at_once) {
  auto config = config_of("opd");
  config.reference = {.concurrency = 0, .timeout_s = std::nan(""), .retries = 1001};
  BOOST_TEST(problems_of(config).size() == 3U);
  config.reference = {.concurrency = 1024, .timeout_s = 0.01, .retries = 0};
  BOOST_TEST(problems_of(config).empty());
}

BOOST_AUTO_TEST_CASE(sft_wants_tokens_that_the_policy_did_not_sample) {
  for (const auto sampler : {sampler_kind::any, sampler_kind::live}) {
    auto config = config_of("sft");
    config.sampler = sampler;
    BOOST_TEST(problem_of(config).starts_with("env.math.sampler is not \"frozen\""));
  }
}

BOOST_AUTO_TEST_CASE(echo_wants_a_role_with_a_weight) {
  auto config = config_of("echo");
  config.echo.roles = {};
  BOOST_TEST(problem_of(config).starts_with("env.math.echo.roles gives no role a weight"));
  config.echo.roles = {{"tool", 0}};
  BOOST_TEST(problem_of(config).starts_with("env.math.echo.roles gives no role a weight"));
}

BOOST_AUTO_TEST_CASE(every_listed_algorithm_is_found) {
  for (const auto &name : names)
    BOOST_TEST(find_algorithm(name)->name == name);
  BOOST_TEST(find_algorithm("") == nullptr);
}

BOOST_AUTO_TEST_SUITE_END()
