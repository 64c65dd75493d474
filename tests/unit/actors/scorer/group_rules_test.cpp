// SPDX-License-Identifier: Apache-2.0
#include "actors/scorer/group_rules.hpp"

#include <boost/test/unit_test.hpp>

#include "tests/support/groups.hpp"

namespace millrace::test {
namespace {

frame_data episode(wire::EpisodeStatus status,
                   wire::CancelReason why = wire::CancelReason::Unspecified) {
  auto out =
      episode_of(fmt::format("e{}", static_cast<int>(status)), 1, {prompt(-1, 3), turn(0, {1})});
  out.finish->status = status;
  out.finish->cancel_reason = why;
  return out;
}

std::optional<unscored_end> end_of(const std::vector<frame_data> &episodes, group_scoring scoring) {
  return find_unscored_end(*header_of(episodes), scoring);
}

const auto ok = episode(wire::EpisodeStatus::Ok);
const auto overload = episode(wire::EpisodeStatus::Cancelled, wire::CancelReason::Overload);
const auto stale = episode(wire::EpisodeStatus::Cancelled, wire::CancelReason::Stale);

BOOST_AUTO_TEST_SUITE(group_rules)

BOOST_AUTO_TEST_CASE(a_whole_group_is_scored_either_way) {
  BOOST_TEST(!end_of({ok, ok}, group_scoring::survivors));
  BOOST_TEST(!end_of({ok, ok}, group_scoring::unit));
}

BOOST_AUTO_TEST_CASE(survivors_are_scored_whatever_failed_beside_them) {
  for (auto status : {wire::EpisodeStatus::Errored, wire::EpisodeStatus::Cancelled,
                      wire::EpisodeStatus::Rejected})
    BOOST_TEST(!end_of({ok, episode(status)}, group_scoring::survivors));
  BOOST_TEST(!end_of({ok, overload}, group_scoring::survivors));
}

BOOST_AUTO_TEST_CASE(an_episode_that_was_cancelled_as_stale_voids_its_group_either_way) {
  for (auto scoring : {group_scoring::survivors, group_scoring::unit}) {
    const auto found = end_of({ok, overload, stale, ok}, scoring);
    BOOST_REQUIRE(found);
    BOOST_TEST((found->end == group_end::stale));
    BOOST_TEST(found->why == "episode 'e2' was cancelled as stale");
  }
}

BOOST_AUTO_TEST_CASE(one_failure_of_any_kind_drops_a_unit_and_is_named) {
  const auto why = [](wire::EpisodeStatus status) {
    const auto found = end_of({ok, episode(status)}, group_scoring::unit);
    BOOST_REQUIRE(found);
    BOOST_TEST((found->end == group_end::dropped));
    return found->why;
  };
  BOOST_TEST(why(wire::EpisodeStatus::Errored) ==
             "it is scored as a unit, and episode 'e1' errored");
  BOOST_TEST(why(wire::EpisodeStatus::Cancelled).ends_with("'e2' was cancelled"));
  BOOST_TEST(why(wire::EpisodeStatus::Rejected).ends_with("'e3' was rejected"));
}

BOOST_AUTO_TEST_CASE(a_reason_counts_only_if_the_episode_was_cancelled) {
  BOOST_TEST(!end_of({episode(wire::EpisodeStatus::Errored, wire::CancelReason::Stale)},
                     group_scoring::survivors));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
} // namespace millrace::test
