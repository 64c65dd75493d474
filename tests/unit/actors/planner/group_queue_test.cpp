// SPDX-License-Identifier: Apache-2.0
#include "actors/planner/group_queue.hpp"

#include <boost/test/unit_test.hpp>

#include "actors/scorer/annotate.hpp"
#include "tests/support/groups.hpp"

namespace millrace::test {
namespace {

/// Two traces with kept samples, or none, that were sampled with these versions.
queued_group group(std::uint64_t ordinal, bool kept = true, std::uint64_t first = 0,
                   std::optional<std::uint64_t> second = {}) {
  auto a = episode_of("a", 1, {prompt(-1, 3), turn(0, {1})});
  auto b = episode_of("b", kept ? 0 : 1, {prompt(-1, 3), turn(0, {1})});
  a.first_version = a.last_version = first;
  b.first_version = b.last_version = second.value_or(first);
  const auto header = header_of(group_of({a, b}));
  return {
      {ordinal, 0},
      make_ready_group(header.bytes(), annotate(header, env_config{}, {}).value().annotations, 64)
          .value(),
      {}};
}

staleness_rule recorded(std::uint64_t limit) { return {{.fresh = false, .offset = 0}, limit}; }

struct queue_fixture {
  batch_config batch{.traces = 4};
  std::set<std::uint64_t> ended;

  /// Ordinals of the groups that end outside a step now.
  std::vector<std::uint64_t> advance(group_queue &queue, std::uint64_t step = 1) const {
    std::vector<std::uint64_t> out;
    while (auto one =
               queue.take_ended([this](group_ref ref) { return ended.contains(ref.ordinal); }))
      out.push_back(one->ref.ordinal);
    for (const auto &one : queue.judge(step))
      out.push_back(one.ref.ordinal);
    return out;
  }
  static std::vector<std::uint64_t> ordinals(const std::vector<queued_group> &groups) {
    std::vector<std::uint64_t> out;
    for (const auto &one : groups)
      out.push_back(one.ref.ordinal);
    return out;
  }
};

using numbers = std::vector<std::uint64_t>;

BOOST_FIXTURE_TEST_SUITE(group_queue_suite, queue_fixture)

BOOST_AUTO_TEST_CASE(in_deterministic_order_a_group_waits_for_all_before_it) {
  group_queue queue(batch, true);
  queue.add(group(1));
  queue.add(group(2, false));
  BOOST_TEST(advance(queue).empty());
  BOOST_TEST(queue.empty());
  queue.add(group(0));
  BOOST_TEST(advance(queue) == numbers{2}, boost::test_tools::per_element());
  BOOST_TEST(queue.has_batch());
  BOOST_TEST(ordinals(queue.cut()) == (numbers{0, 1}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(groups_that_ended_in_an_earlier_life_are_no_gap) {
  ended = {0, 1, 3};
  group_queue queue(batch, true);
  queue.add(group(4));
  queue.add(group(2));
  advance(queue);
  BOOST_TEST(ordinals(queue.cut()) == (numbers{2, 4}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(what_is_put_back_comes_first_and_as_it_was) {
  group_queue queue(batch, true);
  for (std::uint64_t i = 0; i < 4; ++i)
    queue.add(group(i));
  advance(queue);
  auto first = queue.cut();
  advance(queue, 2);
  auto second = queue.cut();
  first[0].scored.samples[0].outcome = sample_record::fate::packed;
  queue.put_back(std::move(second));
  queue.put_back(std::move(first));
  BOOST_TEST(queue.backlog() == 8U);
  BOOST_TEST(queue.backlog_traces() == 8U);
  advance(queue);
  const auto again = queue.cut();
  BOOST_TEST(ordinals(again) == (numbers{0, 1}), boost::test_tools::per_element());
  BOOST_TEST((again[0].scored.samples[0].outcome == sample_record::fate::waiting));
}

BOOST_AUTO_TEST_CASE(groups_that_are_free_again_take_their_turn_again) {
  ended = {0, 1};
  group_queue queue(batch, true);
  queue.add(group(2));
  advance(queue);
  ended = {0};
  queue.turn_back(1);
  queue.add(group(3));
  advance(queue);
  BOOST_TEST(queue.ready() == 2U); // 3 waits for 1
  queue.add(group(1));
  advance(queue);
  BOOST_TEST(ordinals(queue.cut()) == (numbers{2, 1}), boost::test_tools::per_element());
  advance(queue, 2);
  BOOST_TEST(ordinals(queue.cut()) == (numbers{3}), boost::test_tools::per_element());
}

// Group i was sampled with version i alone.
BOOST_AUTO_TEST_CASE(what_is_too_old_for_the_step_ends_and_does_not_fill_it) {
  group_queue queue(batch, true, recorded(1));
  for (std::uint64_t i = 0; i < 6; ++i)
    queue.add(group(i, true, i));
  BOOST_TEST(advance(queue, 4) == (numbers{0, 1}), boost::test_tools::per_element());
  BOOST_TEST(queue.backlog() == 8U);
  BOOST_TEST(ordinals(queue.cut()) == (numbers{2, 3}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_step_judges_only_what_it_takes) {
  group_queue queue(batch, true, recorded(1));
  for (std::uint64_t i = 0; i < 3; ++i)
    queue.add(group(i, true, i == 2 ? 0 : 5));
  BOOST_TEST(advance(queue, 4).empty());
  queue.cut();
  BOOST_TEST(advance(queue, 5) == (numbers{2}), boost::test_tools::per_element());
  BOOST_TEST(queue.empty());
}

BOOST_AUTO_TEST_CASE(a_group_that_is_half_too_old_counts_by_the_other_half) {
  group_queue queue(batch, true, recorded(1));
  queue.add(group(0, true, 0, 9));
  queue.add(group(1, true, 9));
  advance(queue, 4);
  BOOST_TEST(queue.ready() == 3U);
  BOOST_TEST(queue.backlog() == 3U);
  BOOST_TEST(!queue.has_batch());
  const auto taken = queue.cut();
  BOOST_TEST((taken[0].scored.samples[0].outcome == sample_record::fate::stale));
  BOOST_TEST((taken[0].scored.samples[1].outcome == sample_record::fate::waiting));
  BOOST_TEST(queue.backlog() == 0U);
}

BOOST_AUTO_TEST_CASE(a_step_that_is_put_back_is_judged_anew_for_the_step_that_takes_it_then) {
  group_queue queue(batch, true, recorded(1));
  queue.add(group(0, true, 0, 9));
  queue.add(group(1, true, 9));
  advance(queue, 4);
  queue.put_back(queue.cut());
  advance(queue, 2);
  BOOST_TEST(queue.ready() == 4U);
}

BOOST_AUTO_TEST_CASE(a_group_is_found_wherever_it_waits) {
  group_queue queue(batch, true);
  queue.add(group(0));
  queue.add(group(2));
  advance(queue);
  BOOST_TEST(queue.find({0, 0}) != nullptr);
  BOOST_TEST(queue.find({2, 0}) != nullptr);
  BOOST_TEST(queue.find({1, 0}) == nullptr);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
} // namespace millrace::test
