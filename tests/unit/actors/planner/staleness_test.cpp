// SPDX-License-Identifier: Apache-2.0
#include "actors/planner/staleness.hpp"

#include <limits>

#include <boost/test/unit_test.hpp>

#include "actors/scorer/annotate.hpp"
#include "tests/support/groups.hpp"

namespace millrace::test {
namespace {

constexpr auto most = std::numeric_limits<std::uint64_t>::max();

std::uint64_t staleness(std::uint64_t first, std::uint64_t step, source_version version,
                        bool frozen = false) {
  auto one = episode_of("a", 1, {prompt(-1, 3), turn(0, {1})});
  one.first_version = first;
  one.last_version = first + 5; // does not count
  one.frozen = frozen;
  const auto header = header_of(std::vector{one});
  return staleness_rule{version, {}}.of(*header->episodes()->Get(0), step);
}

constexpr source_version fresh{};
constexpr source_version recorded{.fresh = false, .offset = 0};
constexpr source_version offset(std::int64_t by) { return {.fresh = false, .offset = by}; }

BOOST_AUTO_TEST_SUITE(staleness_suite)

BOOST_AUTO_TEST_CASE(staleness_is_how_far_the_first_version_lies_behind_that_of_the_step) {
  BOOST_TEST(staleness(0, 1, recorded) == 0U);
  BOOST_TEST(staleness(0, 4, recorded) == 3U);
  BOOST_TEST(staleness(3, 4, recorded) == 0U);
  BOOST_TEST(staleness(9, 4, recorded) == 0U); // newer than the policy, after a roll back
}

BOOST_AUTO_TEST_CASE(fresh_and_frozen_episodes_are_never_stale) {
  BOOST_TEST(staleness(0, 100, fresh) == 0U);
  BOOST_TEST(staleness(0, 100, recorded, true) == 0U);
}

BOOST_AUTO_TEST_CASE(an_offset_is_added_to_the_recorded_version_and_stops_at_the_ends) {
  BOOST_TEST(staleness(2, 10, offset(3)) == 4U);
  BOOST_TEST(staleness(40, 10, offset(-38)) == 7U);
  BOOST_TEST(staleness(2, 10, offset(-38)) == 9U);
  BOOST_TEST(staleness(most - 9, 10, offset(std::numeric_limits<std::int64_t>::max())) == 0U);
  BOOST_TEST(staleness(0, most, offset(std::numeric_limits<std::int64_t>::min())) == most - 1);
}

BOOST_AUTO_TEST_CASE(what_is_over_the_limit_is_marked_and_what_is_at_it_is_not) {
  auto a = episode_of("a", 1, {prompt(-1, 3), turn(0, {1})});
  auto b = episode_of("b", 0, {prompt(-1, 3), turn(0, {1, 1})});
  a.first_version = 2;
  b.first_version = 1;
  const auto header = header_of({a, b});
  auto group =
      make_ready_group(header.bytes(), annotate(header, {}, {}).value().annotations, 64).value();
  const staleness_rule rule{recorded, 2};
  const auto left = judge(group, 5, rule); // version 4 is trained
  BOOST_TEST(left.traces == 1U);
  BOOST_TEST(left.tokens == 4U);
  BOOST_TEST((group.samples.at(0).outcome == sample_record::fate::waiting));
  BOOST_TEST((group.samples.at(1).outcome == sample_record::fate::stale));
  group.samples[0].outcome = sample_record::fate::packed;
  BOOST_TEST((ages_of({&group}, 5, rule) == std::vector<staleness_count>{{2, 1}}));
}

BOOST_AUTO_TEST_CASE(without_a_limit_nothing_is_too_old) {
  const auto header = header_of({episode_of("a", 1, {prompt(-1, 3), turn(0, {1})}),
                                 episode_of("b", 0, {prompt(-1, 3), turn(0, {1})})});
  auto group =
      make_ready_group(header.bytes(), annotate(header, {}, {}).value().annotations, 64).value();
  BOOST_TEST(judge(group, 1000, {recorded, {}}).traces == 2U);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
} // namespace millrace::test
