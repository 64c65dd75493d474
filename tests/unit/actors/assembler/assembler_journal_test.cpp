// SPDX-License-Identifier: Apache-2.0
// An assembler with a journal: what it tells readers, and what it has when it starts again.
#include <cstring>
#include <fstream>

#include "tests/support/full_disk.hpp"
#include "tests/support/quiet_log.hpp"
#include "tests/unit/actors/assembler/assembler_fixture.hpp"
#include "tests/unit/actors/assembler/journal_fixture.hpp"

namespace millrace::test {
namespace {

using ordinals = std::vector<std::uint64_t>;

struct journaled_fixture {
  temporary_folder folder;
  actor_world world;
  probe<group_complete> scorer{world};
  probe<group_tombstone, group_held> planner{world};
  probe<episodes_fetched> packer{world};
  probe<drained, run_failed> supervisor{world};
  probe<messages_safe> reader{world};
  std::shared_ptr<run_counters> counters = std::make_shared<run_counters>();
  journal_options how = journal_in(folder / "j");
  group_deadlines deadlines{};
  std::unique_ptr<owned_actor> subject;

  /// As a process does that starts: with readers and a scorer, but nothing of the planner yet.
  void start() {
    scorer.got<group_complete>().clear();
    planner.got<group_tombstone>().clear();
    auto own = journal::open(how);
    BOOST_REQUIRE_MESSAGE(own, own.error().message);
    subject = std::make_unique<owned_actor>(world.system().spawn<assembler>(
        world.context(),
        assembler_options{
            .name = "assembler-0", .readers = 2, .seq_len = 100, .deadlines = deadlines},
        assembler_peers{{named("scorer-0", scorer.actor())}, planner.actor(), supervisor.actor()},
        counters, std::move(*own)));
    world.run();
    reader_up();
  }
  void stop() {
    world.end(*subject);
    subject.reset();
    world.run();
  }
  void start_again() {
    stop();
    start();
  }
  template <class Message> void tell(Message what) { world.tell(*subject, std::move(what)); }
  peer the_reader() { return named("env-reader-0", reader.actor()); }
  void reader_up() { tell(peer_up{role::env_reader, the_reader()}); }
  void hello(std::uint8_t of = 7, std::uint64_t epoch = 1) {
    tell(planner_hello{{some_folder(of), epoch}, 0, planner.actor()});
  }
  void send(const arrival &what) {
    std::visit([this](const auto &in) { tell(in); }, what);
  }
  /// Groups of a reader have even ordinals.
  void episode(std::uint64_t ordinal, std::uint32_t member, const std::string &id) {
    send(episode_arrived{{ordinal, 0},
                         info_for(ordinal),
                         member,
                         sealed({some_episode(id, info_for(ordinal)->key)})});
  }
  /// All of a group: one episode in two frames, one that was refused.
  void group(std::uint64_t ordinal) {
    for (const auto &data : some_episode_in_two("a", info_for(ordinal)->key))
      send(frame_arrived{{ordinal, 0}, info_for(ordinal), 0, parsed(data)});
    send(episode_rejected{{ordinal, 0}, info_for(ordinal), 1, "b", 0, "no good"});
  }
  void settled(std::uint64_t ordinal, bool for_good) {
    tell(groups_settled{{{ordinal, 0}}, for_good});
  }
  void wanted(std::uint64_t ordinal, bool scored) { tell(groups_wanted{{{ordinal, 0}}, scored}); }

  ordinals asked() {
    ordinals out;
    for (const auto &one : scorer.got<group_complete>())
      out.push_back(one.group.ordinal);
    return out;
  }
  /// What the reader may forget, after the next sync.
  std::vector<safe_message> safe() {
    world.pass_time();
    std::vector<safe_message> out;
    for (const auto &one : reader.got<messages_safe>())
      out.insert(out.end(), one.messages.begin(), one.messages.end());
    reader.got<messages_safe>().clear();
    return out;
  }
  std::string header(std::size_t i = 0) {
    const auto &all = scorer.got<group_complete>();
    BOOST_REQUIRE_GT(all.size(), i);
    return {reinterpret_cast<const char *>(all[i].header.data()), all[i].header.size()};
  }
  /// The bytes of a group's first episode, as a packer gets them; empty if it gets none.
  std::string fetched(std::uint64_t ordinal) {
    packer.got<episodes_fetched>().clear();
    tell(fetch_episodes{{ordinal, 0}, {0}, packer.actor(), 1});
    std::string out;
    for (const auto &episode : packer.got<episodes_fetched>().at(0).episodes)
      for (const auto &part : episode.parts())
        out.append(reinterpret_cast<const char *>(part.data()), part.size());
    return out;
  }
  bool on_disk() { return std::filesystem::exists(folder / "j" / "segment-000001.mrec"); }
};

const safe_message half{{0, 0}, 0, 0, 0};
const safe_message other_half{{0, 0}, 0, 0, 1};
const safe_message refused{{0, 0}, 1, 0};

BOOST_FIXTURE_TEST_SUITE(assembler_and_journal, journaled_fixture)

BOOST_AUTO_TEST_CASE(it_offers_the_same_header_and_serves_the_same_bytes_after_a_restart) {
  start();
  hello();
  group(0);
  group(2);
  const std::vector before{header(0), header(1), fetched(0), fetched(2)};
  BOOST_TEST(!before[2].empty());
  start_again();
  BOOST_TEST(asked().empty()); // before the planner has spoken
  hello();
  BOOST_TEST(asked() == (ordinals{0, 2}), boost::test_tools::per_element());
  BOOST_TEST((std::vector{header(0), header(1), fetched(0), fetched(2)} == before));
}

BOOST_AUTO_TEST_CASE(a_reader_hears_what_is_safe_once_it_is_synced_and_once) {
  start();
  hello();
  group(0);
  BOOST_TEST(reader.got<messages_safe>().empty());
  BOOST_TEST((safe() == std::vector{half, other_half, refused}));
  BOOST_TEST(safe().empty());
}

BOOST_AUTO_TEST_CASE(nothing_is_written_before_the_planner_has_said_whose_run_it_is) {
  start();
  group(0);
  BOOST_TEST(safe().empty());
  BOOST_TEST(!on_disk());
  BOOST_TEST(asked() == ordinals{0}, boost::test_tools::per_element());
  hello();
  BOOST_TEST(safe().size() == 3U);
  BOOST_TEST(on_disk());
  BOOST_TEST(asked() == (ordinals{0, 0}),
             boost::test_tools::per_element()); // its answer may be lost
}

BOOST_AUTO_TEST_CASE(a_reader_that_comes_later_hears_it_then) {
  start();
  hello();
  tell(peer_down{role::env_reader, the_reader(), "a test"});
  group(0);
  BOOST_TEST(safe().empty());
  reader_up();
  BOOST_TEST(safe().size() == 3U);
}

BOOST_AUTO_TEST_CASE(what_comes_again_after_a_restart_is_a_repeat_and_safe_at_once) {
  start();
  hello();
  group(0);
  start_again();
  hello();
  group(0);
  BOOST_TEST((safe() == std::vector{half, other_half, refused}));
  BOOST_TEST(counters->repeats == 3U);
  BOOST_TEST(counters->duplicates + counters->late == 0U);
  BOOST_TEST(asked() == ordinals{0}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(what_comes_too_late_and_is_not_on_the_disk_is_not_safe) {
  start();
  hello();
  episode(0, 0, "a");
  start_again();
  settled(0, false);
  hello();
  episode(0, 0, "a");
  episode(0, 1, "b");
  BOOST_TEST((safe() == std::vector{safe_message{{0, 0}, 0, 0}}));
}

BOOST_AUTO_TEST_CASE(an_open_group_goes_on_where_it_was) {
  start();
  hello();
  episode(0, 0, "a");
  start_again();
  hello();
  BOOST_TEST(asked().empty());
  episode(0, 1, "b");
  BOOST_TEST(asked() == ordinals{0}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(half_an_episode_goes_on_where_it_was) {
  start();
  hello();
  const auto frames = some_episode_in_two("a", info_for(0)->key);
  send(frame_arrived{{0, 0}, info_for(0), 0, parsed(frames[0])});
  episode(0, 1, "b");
  start_again();
  hello();
  send(frame_arrived{{0, 0}, info_for(0), 0, parsed(frames[1])});
  BOOST_TEST(asked() == ordinals{0}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(the_size_of_a_group_is_kept_too) {
  start();
  hello();
  send(episode_arrived{{0, 0}, info_for(0, 0), 0, sealed({some_episode("a", info_for(0)->key)})});
  send(group_sized{{0, 0}, info_for(0, 2)});
  start_again();
  hello();
  send(episode_arrived{{0, 0}, info_for(0, 0), 1, sealed({some_episode("b", info_for(0)->key)})});
  BOOST_TEST(asked() == ordinals{0}, boost::test_tools::per_element());
}

// A step may need it again; the planner says when it is done for good.
BOOST_AUTO_TEST_CASE(an_open_group_that_its_reader_sent_to_another_is_let_go_at_the_end) {
  start();
  hello();
  episode(0, 0, "a");
  start_again();
  hello();
  tell(source_ended{0, 1});
  BOOST_TEST(planner.got<group_tombstone>().empty());
  BOOST_TEST(counters->groups_open == 1U); // the one of the start before
  BOOST_TEST(on_disk());
  settled(0, true);
  BOOST_TEST(!on_disk());
}

BOOST_AUTO_TEST_CASE(the_deadline_of_a_group_counts_where_its_reader_sends_it) {
  deadlines = {{{"math", 30}}, 0};
  start();
  hello();
  episode(0, 0, "a");
  start_again();
  hello();
  world.pass_time();
  BOOST_TEST(planner.got<group_tombstone>().empty()); // it may be complete elsewhere
  send(group_sized{{0, 0}, info_for(0)});
  world.pass_time();
  BOOST_TEST(planner.got<group_tombstone>().size() == 1U);
}

BOOST_AUTO_TEST_CASE(an_open_group_that_its_reader_claims_expires_at_the_end) {
  start();
  hello();
  episode(0, 0, "a");
  start_again();
  hello();
  send(group_sized{{0, 0}, info_for(0)});
  tell(source_ended{0, 1});
  BOOST_TEST(planner.got<group_tombstone>().size() == 1U);
}

BOOST_AUTO_TEST_CASE(a_group_in_a_step_is_served_from_the_disk_when_it_is_wanted_again) {
  start();
  hello();
  group(0);
  const auto before = fetched(0);
  settled(0, false);
  BOOST_TEST(fetched(0).empty());
  wanted(0, true);
  BOOST_TEST(planner.got<group_held>().size() == 1U);
  BOOST_TEST((fetched(0) == before));
  BOOST_TEST(asked() == ordinals{0}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_group_whose_step_is_no_more_is_scored_again_with_the_same_header) {
  start();
  hello();
  group(0);
  const auto before = header();
  settled(0, false);
  wanted(0, false);
  BOOST_REQUIRE(asked() == (ordinals{0, 0}));
  BOOST_TEST((header(1) == before));
}

BOOST_AUTO_TEST_CASE(the_same_holds_after_a_restart) {
  start();
  hello();
  group(0);
  const auto before = fetched(0);
  start_again();
  settled(0, false); // a planner says so before its hello
  hello();
  BOOST_TEST(asked().empty());
  BOOST_TEST(fetched(0).empty());
  wanted(0, true);
  BOOST_TEST((fetched(0) == before));
}

BOOST_AUTO_TEST_CASE(a_group_that_is_done_for_good_leaves_the_disk) {
  start();
  hello();
  group(0);
  group(2);
  settled(0, true);
  BOOST_TEST(on_disk());
  settled(2, false);
  BOOST_TEST(on_disk());
  settled(2, true);
  BOOST_TEST(!on_disk());
}

BOOST_AUTO_TEST_CASE(a_group_that_was_done_meanwhile_is_not_offered_again) {
  start();
  hello();
  group(0);
  group(2);
  start_again();
  settled(0, true);
  hello();
  BOOST_TEST(asked() == ordinals{2}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(what_its_reader_still_has_completes_a_group_that_is_wanted_again) {
  start();
  hello();
  episode(0, 0, "a"); // of the other it has nothing
  start_again();
  settled(0, false);
  hello();
  tell(group_again{{0, 0}, info_for(0), true});
  episode(0, 0, "a");
  BOOST_TEST(planner.got<group_held>().empty());
  episode(0, 1, "b");
  BOOST_TEST(planner.got<group_held>().size() == 1U);
}

BOOST_AUTO_TEST_CASE(a_lost_reader_leaves_what_is_incomplete) {
  start();
  hello();
  episode(0, 0, "a");
  tell(peer_down{role::env_reader, the_reader(), "a test"});
  reader_up();
  episode(0, 0, "a");
  episode(0, 1, "b");
  BOOST_TEST(asked() == ordinals{0}, boost::test_tools::per_element());
  BOOST_TEST(counters->repeats == 1U);
}

BOOST_AUTO_TEST_CASE(a_journal_of_another_planners_folder_ends_the_process_and_nothing_is_offered) {
  start();
  hello();
  group(0);
  start_again();
  hello(8);
  BOOST_TEST(asked().empty());
  BOOST_REQUIRE(supervisor.got<run_failed>().size() == 1U);
  BOOST_TEST((supervisor.got<run_failed>()[0].what.code == errc::conflict));
}

BOOST_AUTO_TEST_CASE(a_drained_assembler_stays_until_its_journal_is_empty) {
  start();
  hello();
  group(0);
  tell(drain{});
  settled(0, false);
  BOOST_TEST(supervisor.got<drained>().empty());
  settled(0, true);
  BOOST_TEST(supervisor.got<drained>().size() == 1U);
}

BOOST_AUTO_TEST_CASE(without_room_nothing_is_safe_and_nothing_is_lost) {
  const quiet_log quiet;
  start();
  hello();
  group(0);
  BOOST_TEST(safe().size() == 3U);
  {
    const file_size_limit limit(std::filesystem::file_size(folder / "j" / "segment-000001.mrec"));
    group(2);
    BOOST_TEST(safe().empty());
    group(0); // safe, but what came before it is not told yet
    BOOST_TEST(safe().empty());
    BOOST_TEST(asked() == (ordinals{0, 2}), boost::test_tools::per_element());
    const auto waits = counters->waits->snapshot();
    BOOST_REQUIRE(waits.size() == 1U);
    BOOST_TEST(waits[0].what == "space for its journal");
  }
  world.pass_time(); // it tries again
  BOOST_TEST(safe().size() == 6U);
  start_again();
  hello();
  BOOST_TEST(asked() == (ordinals{0, 2}), boost::test_tools::per_element());
  BOOST_TEST(supervisor.got<run_failed>().empty());
}

BOOST_AUTO_TEST_CASE(what_was_not_written_of_a_group_in_a_step_stays_with_its_reader) {
  const quiet_log quiet;
  start();
  hello();
  episode(2, 0, "a");
  BOOST_TEST(safe().size() == 1U);
  {
    const file_size_limit limit(std::filesystem::file_size(folder / "j" / "segment-000001.mrec"));
    group(0);
    settled(0, false);
  }
  world.pass_time();
  BOOST_TEST(safe().empty());
}

BOOST_AUTO_TEST_CASE(a_failed_sync_ends_the_process_and_nothing_is_safe) {
  how.sync = true;
  start();
  hello();
  group(0);
  broken_descriptor broken(folder / "j" / "segment-000001.mrec");
  BOOST_REQUIRE(broken.holds());
  BOOST_TEST(safe().empty());
  broken.mend();
  BOOST_REQUIRE(supervisor.got<run_failed>().size() == 1U);
  BOOST_TEST((supervisor.got<run_failed>()[0].what.code == errc::io));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
} // namespace millrace::test
