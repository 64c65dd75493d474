// SPDX-License-Identifier: Apache-2.0
#include "actors/planner/config_change.hpp"

#include <boost/test/unit_test.hpp>

namespace millrace {
namespace {

std::string changed(std::string_view before, std::string_view now) {
  return text_of(config_changes(before, now));
}

BOOST_AUTO_TEST_SUITE(config_change_suite)

BOOST_AUTO_TEST_CASE(keys_with_another_value_are_named_with_both) {
  BOOST_TEST(changed("a.b = 1\nc = \"x\"\nd = true\n", "a.b = 2\nc = \"y = z\"\nd = true\n") ==
             "a.b 1 -> 2, c \"x\" -> \"y = z\"");
}

BOOST_AUTO_TEST_CASE(the_same_settings_in_another_order_are_no_change) {
  BOOST_TEST(changed("a = 1\nb = 2\n", "b = 2\na = 1\n").empty());
}

BOOST_AUTO_TEST_CASE(a_key_that_is_new_or_gone_is_a_change) {
  BOOST_TEST(changed("a = 1\n", "b = 2\n") == "b (none) -> 2, a 1 -> (none)");
}

BOOST_AUTO_TEST_CASE(an_environment_that_is_not_named_has_the_defaults) {
  const std::string_view defaults = "env_default.group_size = 4\nenv_default.gate.reject_min = 0\n";
  const auto with = [&](std::string_view more) {
    return std::string(defaults) + std::string(more);
  };
  BOOST_TEST(changed(defaults, with("env.math.group_size = 4\n")).empty());
  BOOST_TEST(changed(defaults, with("env.math.gate.reject_min = 1\n")) ==
             "env.math.gate.reject_min 0 -> 1");
  BOOST_TEST(changed(with("env.\"a = b.c\".group_size = 8\n"), defaults) ==
             "env.\"a = b.c\".group_size 8 -> 4");
}

BOOST_AUTO_TEST_CASE(a_long_list_is_cut) {
  std::string before, now;
  for (int i = 0; i < 13; ++i) {
    before += fmt::format("k{} = 0\n", i);
    now += fmt::format("k{} = 1\n", i);
  }
  const auto text = changed(before, now);
  BOOST_TEST(text.ends_with("k9 0 -> 1 and 3 more"), text);
}

BOOST_AUTO_TEST_CASE(what_the_log_rests_on_is_known) {
  for (const auto *key : {"trainer.policy", "env_default.group_size", "env.math.group_size"})
    BOOST_TEST(is_bound_to_log(key), key);
  for (const auto *key : {"batch.traces", "env_reader.instances", "env.math.algorithm", "seq_len"})
    BOOST_TEST(!is_bound_to_log(key), key);
}

BOOST_AUTO_TEST_CASE(what_may_reject_other_episodes_is_known) {
  for (const auto *key : {"vocab_size", "env.math.sampler", "env_default.algorithm"})
    BOOST_TEST(decides_what_is_rejected(key), key);
  for (const auto *key : {"batch.traces", "env.math.temperature"})
    BOOST_TEST(!decides_what_is_rejected(key), key);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
} // namespace millrace
