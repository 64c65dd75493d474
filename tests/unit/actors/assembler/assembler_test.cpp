// SPDX-License-Identifier: Apache-2.0
#include "actors/assembler/assembler.hpp"

#include "tests/unit/actors/assembler/assembler_fixture.hpp"

namespace millrace::test {
namespace {

BOOST_FIXTURE_TEST_SUITE(assembler_suite, assembler_fixture)

BOOST_AUTO_TEST_CASE(a_group_is_sent_on_when_its_last_episode_is_there) {
  episode(0, "a");
  BOOST_TEST(scorer.got<group_complete>().empty());
  episode(1, "b");
  const auto header = completed();
  BOOST_TEST(header->size() == 2U);
  BOOST_TEST(text_of(header->episodes()->Get(0)->id()) == "a");
  BOOST_TEST(text_of(header->episodes()->Get(1)->id()) == "b");
}

BOOST_AUTO_TEST_CASE(a_header_lists_episodes_by_first_record_not_by_arrival) {
  episode(1, "b");
  episode(0, "a");
  BOOST_TEST(text_of(completed()->episodes()->Get(0)->id()) == "a");
}

BOOST_AUTO_TEST_CASE(frames_join_whatever_order_they_come_in) {
  const auto frames = some_episode_in_two("a");
  frame_of(0, frames[1]);
  frame_of(0, frames[0]);
  episode(1, "b");
  const auto header = completed();
  BOOST_TEST(header->episodes()->Get(0)->tokens() == 8U);
  BOOST_TEST((header->episodes()->Get(0)->status() == wire::EpisodeStatus::Ok));
}

BOOST_AUTO_TEST_CASE(an_episode_whose_counts_do_not_fit_is_rejected_and_counts_for_its_group) {
  auto frames = some_episode_in_two("a");
  frames[1].finish->tokens += 1;
  frame_of(0, frames[0]);
  frame_of(0, frames[1]);
  episode(1, "b");
  const auto header = completed();
  BOOST_TEST((header->episodes()->Get(0)->status() == wire::EpisodeStatus::Rejected));
  BOOST_TEST(text_of(header->episodes()->Get(0)->reason()).find("9") != std::string_view::npos);
  BOOST_TEST(counters->rejected == 1U);
}

BOOST_AUTO_TEST_CASE(a_refused_episode_counts_for_its_group_and_drops_its_frames) {
  frame_of(0, some_episode_in_two("a")[0]);
  world.tell(subject, episode_rejected{{0, 0}, pair, 0, "a", 0, "token id 7 is odd"});
  episode(1, "b");
  BOOST_TEST(text_of(completed()->episodes()->Get(0)->reason()) == "token id 7 is odd");
}

BOOST_AUTO_TEST_CASE(a_good_later_attempt_replaces_a_refused_one) {
  world.tell(subject, episode_rejected{{0, 0}, pair, 0, "a", 0, "bad"});
  episode(0, "a", 1);
  episode(1, "b");
  BOOST_TEST((completed()->episodes()->Get(0)->status() == wire::EpisodeStatus::Ok));
}

BOOST_AUTO_TEST_CASE(a_refused_earlier_attempt_leaves_a_later_one_alone) {
  auto frames = some_episode_in_two("a");
  frames[0].attempt = frames[1].attempt = 1;
  frame_of(0, frames[0]);
  world.tell(subject, episode_rejected{{0, 0}, pair, 0, "a", 0, "bad"});
  frame_of(0, frames[1]);
  episode(1, "b");
  BOOST_TEST((completed()->episodes()->Get(0)->status() == wire::EpisodeStatus::Ok));
}

BOOST_AUTO_TEST_CASE(an_episode_that_comes_twice_is_counted_once_and_as_a_duplicate) {
  episode(0, "a");
  episode(0, "a");
  BOOST_TEST(scorer.got<group_complete>().empty());
  BOOST_TEST(counters->duplicates == 1U);
}

BOOST_AUTO_TEST_CASE(a_frame_that_comes_twice_is_a_duplicate) {
  const auto frames = some_episode_in_two("a");
  frame_of(0, frames[0]);
  frame_of(0, frames[0]);
  frame_of(0, frames[1]);
  episode(1, "b");
  BOOST_TEST(completed()->episodes()->Get(0)->tokens() == 8U);
  BOOST_TEST(counters->duplicates == 1U);
}

BOOST_AUTO_TEST_CASE(a_later_attempt_replaces_an_earlier_one_and_not_the_other_way_round) {
  episode(0, "a", 1);
  episode(0, "a", 0);
  BOOST_TEST(counters->duplicates == 1U);
  episode(0, "a", 2);
  BOOST_TEST(counters->duplicates == 2U);
  episode(1, "b");
  BOOST_TEST(completed()->episodes()->Get(0)->attempt() == 2U);
}

BOOST_AUTO_TEST_CASE(an_episode_for_a_complete_or_settled_group_is_late) {
  episode(0, "a");
  episode(1, "b");
  episode(2, "c");
  BOOST_TEST(counters->late == 1U);
  world.tell(subject, groups_settled{{{0, 0}}});
  episode(2, "c");
  BOOST_TEST(counters->late == 2U);
  BOOST_TEST(scorer.got<group_complete>().size() == 1U);
}

// Whatever it is, and whatever its attempt.
BOOST_AUTO_TEST_CASE(all_that_comes_for_a_group_that_has_ended_is_late_and_changes_nothing) {
  group(0);
  const auto send_all = [this] {
    const auto frames = some_episode_in_two("a");
    frame_of(0, frames[0]);
    episode(0, "a", 0);
    episode(1, "b", 7); // a later attempt
    world.tell(subject, episode_rejected{{0, 0}, pair, 0, "a", 9, "bad"});
  };
  send_all();
  BOOST_TEST(counters->late == 4U);
  BOOST_TEST(fetched({1}).episodes.at(0).head().attempt() == 0U);
  world.tell(subject, groups_settled{{{0, 0}}});
  send_all();
  world.tell(subject, group_sized{{0, 0}, pair});
  BOOST_TEST(counters->late == 8U);
  BOOST_TEST(counters->duplicates == 0U);
  BOOST_TEST(counters->groups_open == 0U);
  BOOST_TEST(scorer.got<group_complete>().size() == 1U);
}

BOOST_AUTO_TEST_CASE(a_second_answer_for_a_slot_is_a_duplicate_whatever_it_says) {
  episode(0, "a");
  frame_of(0, some_episode_in_two("a")[0]);
  world.tell(subject, episode_rejected{{0, 0}, pair, 0, "a", 0, "bad"});
  episode(0, "a");
  BOOST_TEST(counters->duplicates == 3U);
  episode(1, "b");
  BOOST_TEST((completed()->episodes()->Get(0)->status() == wire::EpisodeStatus::Ok));
}

struct deadline_fixture : assembler_fixture {
  deadline_fixture() : assembler_fixture({{{"math", 30}}, 0}) {}
};

BOOST_FIXTURE_TEST_CASE(a_deadline_closes_what_is_not_complete_with_its_name, deadline_fixture) {
  episode(0, "a");
  world.pass_time();
  BOOST_REQUIRE_EQUAL(planner.got<group_tombstone>().size(), 1);
  const auto &tombstone = planner.got<group_tombstone>()[0];
  BOOST_TEST((tombstone.reason == tombstone_reason::overdue));
  BOOST_TEST(tombstone.why == "1 of 2 episodes came within 30 s (env.math.group_deadline)");
  BOOST_TEST(counters->overdue == 1U);
  episode(1, "b");
  BOOST_TEST(counters->late == 1U);
  BOOST_TEST(scorer.got<group_complete>().empty());
}

BOOST_FIXTURE_TEST_CASE(a_deadline_means_nothing_to_a_complete_group, deadline_fixture) {
  group(0);
  world.pass_time();
  BOOST_TEST(planner.got<group_tombstone>().empty());
  BOOST_TEST(counters->overdue == 0U);
}

BOOST_FIXTURE_TEST_CASE(an_environment_without_a_deadline_waits, deadline_fixture) {
  pair = std::make_shared<group_info>(group_info{some_key("code"), "test", 2});
  episode(0, "a");
  world.pass_time();
  BOOST_TEST(planner.got<group_tombstone>().empty());
}

// Its first deadline comes when it has been opened anew.
BOOST_FIXTURE_TEST_CASE(a_group_that_is_sent_again_because_it_is_wanted_has_none,
                        deadline_fixture) {
  group(0);
  world.tell(subject, groups_settled{{{0, 0}}});
  world.tell(subject, group_again{{0, 0}, pair, true, {1, 1}});
  episode(0, "a");
  world.pass_time();
  BOOST_TEST(planner.got<group_tombstone>().empty());
}

BOOST_FIXTURE_TEST_CASE(a_group_that_is_moved_here_has_a_deadline_here, deadline_fixture) {
  world.tell(subject, group_again{{0, 0}, pair});
  episode(0, "a");
  world.pass_time();
  BOOST_TEST(planner.got<group_tombstone>().size() == 1U);
}

BOOST_AUTO_TEST_CASE(the_end_of_a_reader_leaves_what_another_is_sending_again_open) {
  end(0);
  episode(0, "a");
  end(1);
  BOOST_TEST(planner.got<group_tombstone>().empty());
  episode(1, "b");
  BOOST_TEST(completed()->size() == 2U);
}

BOOST_AUTO_TEST_CASE(data_of_a_group_ends_with_its_reader) {
  episode(0, "a");
  end(1);
  BOOST_TEST(planner.got<group_tombstone>().empty());
  end(0);
  BOOST_REQUIRE_EQUAL(planner.got<group_tombstone>().size(), 1);
  const auto &tombstone = planner.got<group_tombstone>()[0];
  BOOST_TEST((tombstone.reason == tombstone_reason::expired));
  BOOST_TEST(tombstone.why == "1 of 2 episodes came");
  BOOST_TEST(parse<wire::GroupHeader>(tombstone.header).value()->episodes()->size() == 1U);
}

BOOST_AUTO_TEST_CASE(an_episode_without_its_end_is_listed_when_its_group_expires) {
  frame_of(0, some_episode_in_two("a")[0]);
  end(0);
  end(1);
  const auto header = parse<wire::GroupHeader>(planner.got<group_tombstone>().at(0).header).value();
  BOOST_REQUIRE_EQUAL(header->episodes()->size(), 1);
  BOOST_TEST(text_of(header->episodes()->Get(0)->id()) == "a");
}

BOOST_AUTO_TEST_CASE(a_size_that_comes_late_completes_its_group) {
  pair = std::make_shared<group_info>(group_info{some_key(), "test", 0});
  episode(0, "a");
  episode(1, "b");
  BOOST_TEST(scorer.got<group_complete>().empty());
  const auto known = std::make_shared<group_info>(group_info{some_key(), "test", 2});
  world.tell(subject, group_sized{{0, 0}, known});
  BOOST_TEST(completed()->size() == 2U);
}

BOOST_AUTO_TEST_CASE(a_group_whose_size_nobody_says_expires_with_a_word_on_what_to_do) {
  pair = std::make_shared<group_info>(group_info{some_key(), "test", 0});
  episode(0, "a");
  end(0);
  end(1);
  BOOST_TEST(planner.got<group_tombstone>().at(0).why.find("group_size") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(episodes_are_served_by_header_index_until_their_group_is_settled) {
  episode(1, "b");
  episode(0, "a");
  const auto both = fetched({0, 1});
  BOOST_REQUIRE_EQUAL(both.episodes.size(), 2);
  BOOST_TEST(both.episodes[0].id() == "a");
  const auto none = fetched({0, 2});
  BOOST_TEST(none.episodes.empty());
  BOOST_TEST(!none.problem.empty());
  world.tell(subject, groups_settled{{{0, 0}}});
  BOOST_TEST(fetched({0}).problem.find("assembler-0") != std::string::npos);
  BOOST_TEST(counters->groups_open == 0U);
}

BOOST_AUTO_TEST_CASE(an_answer_says_which_question_and_which_group_it_is_for) {
  episode(0, "a");
  world.tell(subject, fetch_episodes{{0, 0}, {0}, packer.actor(), 7});
  world.tell(subject, fetch_episodes{{5, 0}, {0}, packer.actor(), 8});
  const auto &answers = packer.got<episodes_fetched>();
  BOOST_REQUIRE_EQUAL(answers.size(), 2);
  BOOST_TEST(answers[0].job == 7U);
  BOOST_TEST(answers[0].group.ordinal == 0U);
  BOOST_TEST(answers[1].job == 8U);
  BOOST_TEST(answers[1].group.ordinal == 5U);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
} // namespace millrace::test
