// SPDX-License-Identifier: Apache-2.0
#include "actors/loss/loss_tally.hpp"

#include <map>
#include <string>

#include <boost/test/unit_test.hpp>

namespace millrace::test {
namespace {

using metrics = std::map<std::string, double>;

metrics named(const component_tallies &tallies, rl_kind rl = rl_kind::standard) {
  metrics out;
  for (const auto &[name, value] : metrics_of(tallies, rl))
    out.emplace(name, value);
  return out;
}

const loss_tally eight{.tokens = 8,
                       .hit = 4,
                       .hit_high = 1,
                       .hit_low = 2,
                       .hit_kl = 2,
                       .kept_kl = 12,
                       .shortfall = 6,
                       .loss = 5};

BOOST_AUTO_TEST_SUITE(loss_tally_suite)

BOOST_AUTO_TEST_CASE(rl_has_seven_metrics) {
  const metrics want{{"masked_mismatch_kl", 0.5},
                     {"unmasked_mismatch_kl", 3},
                     {"is_masked", 0.5},
                     {"is_masked_high", 0.125},
                     {"is_masked_low", 0.25},
                     {"masked_advantage_positive", 0.25},
                     {"masked_advantage_negative", 0.5}};
  BOOST_TEST((named({.rl = eight, .ce = {}, .ref_kl = {}}) == want));
}

BOOST_AUTO_TEST_CASE(ipo_has_no_sides) {
  const metrics want{{"masked_mismatch_kl", 0.5}, {"unmasked_mismatch_kl", 3}, {"is_masked", 0.5}};
  BOOST_TEST((named({.rl = eight, .ce = {}, .ref_kl = {}}, rl_kind::ipo) == want));
}

BOOST_AUTO_TEST_CASE(ref_kl_has_its_prefix_and_ce_one_metric) {
  const metrics want{{"ref_kl/masked_mismatch_kl", 0.5},
                     {"ref_kl/unmasked_mismatch_kl", 3},
                     {"ref_kl/is_masked", 0.5},
                     {"ref_kl", 0.75},
                     {"nll", 0.75}};
  BOOST_TEST((named({.rl = {}, .ce = eight, .ref_kl = eight}) == want));
}

BOOST_AUTO_TEST_CASE(no_component_has_no_metrics) { BOOST_TEST(named({}).empty()); }

BOOST_AUTO_TEST_CASE(means_over_nothing_are_zero) {
  for (const auto &[name, value] : named({.rl = loss_tally{}, .ce = {}, .ref_kl = {}}))
    BOOST_TEST(value == 0, name);
}

BOOST_AUTO_TEST_CASE(every_field_adds_up) {
  auto sum = eight;
  sum += eight;
  const loss_tally want{.tokens = 16,
                        .hit = 8,
                        .hit_high = 2,
                        .hit_low = 4,
                        .hit_kl = 4,
                        .kept_kl = 24,
                        .shortfall = 12,
                        .loss = 10};
  BOOST_TEST((sum == want));
}

BOOST_AUTO_TEST_CASE(adding_runs_a_component_that_either_ran) {
  component_tallies sum{.rl = eight, .ce = {}, .ref_kl = {}};
  sum += {.rl = {}, .ce = {}, .ref_kl = eight};
  BOOST_TEST((sum == component_tallies{.rl = eight, .ce = {}, .ref_kl = eight}));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
} // namespace millrace::test
