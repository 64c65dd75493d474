// SPDX-License-Identifier: Apache-2.0
#include "actors/node/directory_table.hpp"

#include <algorithm>
#include <optional>

#include <boost/test/unit_test.hpp>

#include "runtime/random.hpp"

namespace millrace::test {
namespace {

using namespace std::chrono_literals;
using registration = directory_table::registration;
using time_point = directory_table::time_point;

const time_point start{1000s};
constexpr auto lease = 10s;

directory_table table_at(time_point now) { return directory_table({"maths", 7, lease, 1h}, now); }

process_alive news(const std::string &process, role what, std::uint64_t incarnation = 1) {
  process_alive made;
  made.entry = {process, incarnation,       "tcp://10.0.0.1:7000",
                "",      {{what, process}}, process_state::alive};
  return made;
}

std::optional<process_state> state_of(const directory_table &table, const std::string &process) {
  for (const auto &view : table.view())
    for (const auto &each : view.entries)
      if (each.process == process)
        return each.state;
  return std::nullopt;
}

std::vector<process_entry> flat(const std::vector<directory_view> &views) {
  std::vector<process_entry> all;
  for (const auto &view : views)
    all.insert(all.end(), view.entries.begin(), view.entries.end());
  return all;
}

/// Everyone renews, and the table looks at its clock, every second until `end`.
void renew_until(directory_table &table, time_point from, time_point end,
                 const std::vector<process_alive> &who) {
  for (auto now = from; now <= end; now += 1s) {
    for (const auto &each : who)
      BOOST_TEST((table.alive(now, each).value() == registration::renewed));
    BOOST_TEST(table.expire(now).empty());
  }
}

BOOST_AUTO_TEST_SUITE(directory_table_suite)

BOOST_AUTO_TEST_CASE(a_new_process_is_added_and_then_renewed) {
  auto table = table_at(start);
  BOOST_TEST((table.alive(start, news("scorer-1", role::scorer)).value() == registration::added));
  BOOST_TEST((table.alive(start, news("scorer-1", role::scorer)).value() == registration::renewed));
}

BOOST_AUTO_TEST_CASE(a_change_is_told_once) {
  auto table = table_at(start);
  const auto scorer = news("scorer-1", role::scorer);
  static_cast<void>(table.alive(start, scorer));
  const auto told = table.changes();
  BOOST_TEST(told.size() == 1U);
  BOOST_TEST(told.at(0).directory == 7U);
  BOOST_TEST((told.at(0).entries == std::vector{scorer.entry}));
  BOOST_TEST(table.changes().empty());
  static_cast<void>(table.alive(start + 1s, scorer));
  BOOST_TEST(table.changes().empty());
  auto moved = scorer;
  moved.entry.endpoint = "tcp://10.0.0.2:7000";
  static_cast<void>(table.alive(start + 2s, moved));
  BOOST_TEST((flat(table.changes()) == std::vector{moved.entry}));
}

BOOST_AUTO_TEST_CASE(a_larger_incarnation_replaces_the_older_which_is_told_of_as_gone) {
  auto table = table_at(start);
  auto old = news("scorer-1", role::scorer, 5);
  const auto young = news("scorer-1", role::scorer, 6);
  static_cast<void>(table.alive(start, old));
  static_cast<void>(table.changes());
  BOOST_TEST((table.alive(start + 1s, young).value() == registration::added));
  old.entry.state = process_state::gone;
  BOOST_TEST((flat(table.changes()) == std::vector{old.entry, young.entry}));
  BOOST_TEST((flat(table.view()) == std::vector{young.entry}));
}

BOOST_AUTO_TEST_CASE(a_smaller_incarnation_is_superseded_and_changes_nothing) {
  auto table = table_at(start);
  static_cast<void>(table.alive(start, news("scorer-1", role::scorer, 6)));
  static_cast<void>(table.changes());
  BOOST_TEST(
      (table.alive(start, news("scorer-1", role::scorer, 5)).value() == registration::superseded));
  BOOST_TEST(table.changes().empty());
  table.leaves(start, {"scorer-1", 5});
  BOOST_TEST((state_of(table, "scorer-1") == process_state::alive));
}

BOOST_AUTO_TEST_CASE(a_lease_that_runs_out_makes_a_process_gone_once) {
  auto table = table_at(start);
  static_cast<void>(table.alive(start, news("scorer-1", role::scorer)));
  const std::vector others{news("scorer-2", role::scorer)};
  static_cast<void>(table.alive(start, others[0]));
  renew_until(table, start + 1s, start + lease, others);
  const auto late = start + lease + 1s;
  static_cast<void>(table.alive(late, others[0]));
  static_cast<void>(table.changes());
  const auto gone = table.expire(late);
  BOOST_TEST(gone.size() == 1U);
  BOOST_TEST(gone.at(0).process == "scorer-1");
  BOOST_TEST((gone.at(0).state == process_state::gone));
  BOOST_TEST((flat(table.changes()) == gone));
  BOOST_TEST(table.expire(late + 1s).empty());
}

BOOST_AUTO_TEST_CASE(who_was_declared_gone_comes_back_by_renewing) {
  auto table = table_at(start);
  const auto scorer = news("scorer-1", role::scorer);
  static_cast<void>(table.alive(start, scorer));
  for (auto now = start; now <= start + lease + 1s; now += 1s)
    static_cast<void>(table.expire(now));
  BOOST_TEST((state_of(table, "scorer-1") == process_state::gone));
  static_cast<void>(table.changes());
  BOOST_TEST((table.alive(start + 12s, scorer).value() == registration::added));
  BOOST_TEST((flat(table.changes()) == std::vector{scorer.entry}));
}

BOOST_AUTO_TEST_CASE(a_directory_that_stood_still_declares_nobody_gone_for_one_lease) {
  auto table = table_at(start);
  static_cast<void>(table.alive(start, news("scorer-1", role::scorer)));
  const auto woken = start + 1h;
  for (auto now = woken; now < woken + lease; now += 1s)
    BOOST_TEST(table.expire(now).empty());
  BOOST_TEST(table.expire(woken + lease).size() == 1U);
}

BOOST_AUTO_TEST_CASE(a_restarted_directory_learns_all_again_and_declares_nobody_gone) {
  const std::vector all{news("planner", role::planner), news("scorer-1", role::scorer),
                        news("scorer-2", role::scorer)};
  auto again = directory_table({"maths", 8, lease, 1h}, start + 100s);
  BOOST_TEST(again.view().empty());
  BOOST_TEST(again.expire(start + 100s + lease - 1s).empty());
  for (const auto &each : all)
    BOOST_TEST((again.alive(start + 110s, each).value() == registration::added));
  BOOST_TEST(again.view().at(0).directory == 8U);
  BOOST_TEST(flat(again.changes()).size() == 3U);
  renew_until(again, start + 111s, start + 150s, all);
}

BOOST_AUTO_TEST_CASE(leaving_ends_an_incarnation) {
  auto table = table_at(start);
  const auto scorer = news("scorer-1", role::scorer, 5);
  static_cast<void>(table.alive(start, scorer));
  static_cast<void>(table.changes());
  table.leaves(start + 1s, {"scorer-1", 5});
  BOOST_TEST((flat(table.changes()).at(0).state == process_state::left));
  BOOST_TEST((table.alive(start + 2s, scorer).value() == registration::superseded));
  BOOST_TEST(
      (table.alive(start + 2s, news("scorer-1", role::scorer, 6)).value() == registration::added));
}

BOOST_AUTO_TEST_CASE(who_has_left_is_never_gone_and_is_forgotten_in_the_end) {
  auto table = table_at(start);
  static_cast<void>(table.alive(start, news("scorer-1", role::scorer)));
  table.leaves(start, {"scorer-1", 1});
  for (auto now = start; now <= start + 1h; now += 1s)
    BOOST_TEST(table.expire(now).empty());
  BOOST_TEST((state_of(table, "scorer-1") == process_state::left));
  BOOST_TEST(table.expire(start + 1h + 1s).empty());
  BOOST_TEST(table.view().empty());
}

BOOST_AUTO_TEST_CASE(a_second_process_with_an_actor_of_one_name_is_refused_by_name) {
  auto table = table_at(start);
  auto first = news("a", role::scorer);
  first.entry.actors = {{role::scorer, "scorer-1"}};
  auto second = news("b", role::scorer);
  second.entry.actors = {{role::scorer, "scorer-1"}};
  static_cast<void>(table.alive(start, first));
  const auto refused = table.alive(start, second);
  BOOST_TEST((refused.error().code == errc::conflict));
  BOOST_TEST(refused.error().message ==
             "actor 'scorer-1' of process 'b' is in process 'a' already; "
             "--name gives it another name");
  BOOST_TEST(!state_of(table, "b").has_value());
  table.leaves(start, {"a", 1});
  BOOST_TEST((table.alive(start, second).value() == registration::added));
}

BOOST_AUTO_TEST_CASE(who_comes_back_after_its_actor_was_taken_over_is_refused) {
  auto table = table_at(start);
  auto first = news("a", role::scorer);
  first.entry.actors = {{role::scorer, "scorer-1"}};
  auto second = news("b", role::scorer);
  second.entry.actors = first.entry.actors;
  static_cast<void>(table.alive(start, first));
  for (auto now = start; now <= start + lease + 1s; now += 1s)
    static_cast<void>(table.expire(now));
  BOOST_TEST((table.alive(start + 12s, second).value() == registration::added));
  BOOST_TEST((table.alive(start + 12s, first).error().code == errc::conflict));
  BOOST_TEST((state_of(table, "a") == process_state::gone));
}

BOOST_AUTO_TEST_CASE(an_actor_that_a_process_no_longer_has_may_be_elsewhere) {
  auto table = table_at(start);
  auto first = news("a", role::scorer);
  static_cast<void>(table.alive(start, first));
  first.entry.actors = {{role::scorer, "other"}};
  static_cast<void>(table.alive(start, first));
  auto second = news("b", role::scorer);
  second.entry.actors = {{role::scorer, "a"}};
  BOOST_TEST((table.alive(start, second).value() == registration::added));
}

BOOST_AUTO_TEST_CASE(a_process_without_a_name_or_with_twice_the_same_actor_is_refused) {
  auto table = table_at(start);
  BOOST_TEST((table.alive(start, news("", role::scorer)).error().code == errc::bad_value));
  auto twice = news("a", role::scorer);
  twice.entry.actors.push_back({role::packer, "a"});
  BOOST_TEST((table.alive(start, twice).error().code == errc::bad_value));
}

BOOST_AUTO_TEST_CASE(draining_finds_a_process_by_its_name_and_by_that_of_an_actor) {
  for (const std::string name : {"host-a", "scorer-1"}) {
    auto table = table_at(start);
    auto first = news("host-a", role::scorer);
    first.entry.actors = {{role::scorer, "scorer-1"}, {role::host, "host"}};
    static_cast<void>(table.alive(start, first));
    static_cast<void>(table.alive(start, news("scorer-2", role::scorer)));
    static_cast<void>(table.changes());
    const auto drained = table.drain(name).value();
    BOOST_TEST(drained.process == "host-a");
    BOOST_TEST((drained.state == process_state::draining));
    BOOST_TEST((flat(table.changes()) == std::vector{drained}));
  }
}

BOOST_AUTO_TEST_CASE(a_draining_process_stays_so_when_its_next_news_say_alive) {
  auto table = table_at(start);
  const auto scorer = news("scorer-1", role::scorer);
  static_cast<void>(table.alive(start, scorer));
  static_cast<void>(table.alive(start, news("scorer-2", role::scorer)));
  BOOST_TEST(table.drain("scorer-1").has_value());
  BOOST_TEST((table.alive(start, scorer).value() == registration::renewed));
  BOOST_TEST((state_of(table, "scorer-1") == process_state::draining));
  BOOST_TEST(table.drain("scorer-1").has_value()); // again: nothing changes
}

BOOST_AUTO_TEST_CASE(a_restarted_directory_believes_a_process_that_says_it_drains) {
  auto table = table_at(start);
  auto scorer = news("scorer-1", role::scorer);
  scorer.entry.state = process_state::draining;
  static_cast<void>(table.alive(start, scorer));
  BOOST_TEST((state_of(table, "scorer-1") == process_state::draining));
  scorer.entry.state = process_state::gone; // nobody can say that of itself
  static_cast<void>(table.alive(start, news("scorer-2", role::scorer)));
  auto odd = news("scorer-3", role::scorer);
  odd.entry.state = process_state::gone;
  static_cast<void>(table.alive(start, odd));
  BOOST_TEST((state_of(table, "scorer-3") == process_state::alive));
}

BOOST_AUTO_TEST_CASE(draining_an_unknown_name_gives_the_nearest) {
  auto table = table_at(start);
  static_cast<void>(table.alive(start, news("scorer-1", role::scorer)));
  const auto refused = table.drain("scorer1");
  BOOST_TEST((refused.error().code == errc::not_found));
  BOOST_TEST(refused.error().message ==
             "nobody in run maths is named 'scorer1'; did you mean 'scorer-1'?");
  BOOST_TEST(table.drain("xyz").error().message ==
             "nobody in run maths is named 'xyz'; millrace status shows the names");
}

BOOST_AUTO_TEST_CASE(the_last_of_a_role_is_not_drained) {
  auto table = table_at(start);
  static_cast<void>(table.alive(start, news("scorer-1", role::scorer)));
  static_cast<void>(table.alive(start, news("scorer-2", role::scorer)));
  BOOST_TEST(table.drain("scorer-1").has_value());
  const auto refused = table.drain("scorer-2");
  BOOST_TEST((refused.error().code == errc::conflict));
  BOOST_TEST(refused.error().message ==
             "'scorer-2' cannot be drained: the run has no other scorer; start one first");
  BOOST_TEST((state_of(table, "scorer-2") == process_state::alive));
}

BOOST_AUTO_TEST_CASE(who_cannot_be_replaced_is_not_drained) {
  for (const role what : {role::directory, role::env_reader, role::planner, role::trainer}) {
    auto table = table_at(start);
    static_cast<void>(table.alive(start, news("one", what)));
    static_cast<void>(table.alive(start, news("two", what)));
    BOOST_TEST((table.drain("one").error().code == errc::unsupported));
    BOOST_TEST((state_of(table, "one") == process_state::alive));
  }
}

BOOST_AUTO_TEST_CASE(who_has_ended_is_not_drained) {
  auto table = table_at(start);
  static_cast<void>(table.alive(start, news("scorer-1", role::scorer)));
  table.leaves(start, {"scorer-1", 1});
  BOOST_TEST(table.drain("scorer-1").error().message == "process 'scorer-1' has left already");
}

BOOST_AUTO_TEST_CASE(views_hold_at_most_a_hundred_entries_of_1024_processes) {
  auto table = table_at(start);
  for (int i = 0; i < 1'024; ++i)
    static_cast<void>(table.alive(start, news("trainer-" + std::to_string(i), role::trainer)));
  for (const auto &views : {table.changes(), table.view()}) {
    BOOST_TEST(views.size() == 11U);
    BOOST_TEST(flat(views).size() == 1'024U);
    for (const auto &view : views)
      BOOST_TEST(view.entries.size() <= directory_table::view_entries);
  }
  BOOST_TEST(table.answer(start).processes.size() == 1'024U);
}

BOOST_AUTO_TEST_CASE(large_entries_get_views_of_their_own) {
  auto table = table_at(start);
  for (int i = 0; i < 4; ++i) {
    auto many = news("host-" + std::to_string(i), role::trainer);
    for (int j = 0; j < 500; ++j)
      many.entry.actors.push_back({role::trainer, std::to_string(i * 1'000 + j)});
    static_cast<void>(table.alive(start, many));
  }
  BOOST_TEST(table.view().size() == 4U);
}

BOOST_AUTO_TEST_CASE(an_answer_has_the_last_status_and_ages) {
  auto table = table_at(start);
  auto scorer = news("scorer-1", role::scorer);
  static_cast<void>(table.alive(start, scorer));
  scorer.status.held = 77;
  static_cast<void>(table.alive(start + 5s, scorer));
  const auto answer = table.answer(start + 7s);
  BOOST_TEST(answer.run == "maths");
  BOOST_TEST(answer.processes.at(0).status.held == 77U);
  BOOST_TEST(answer.processes.at(0).age_ms == 2'000U);
  BOOST_TEST(answer.processes.at(0).since_ms == 7'000U);
}

/// The rules again, as slow and plain as they can be written.
struct model {
  struct process {
    std::uint64_t incarnation;
    process_state state;
    std::string actor;
    time_point renewed;
  };
  std::map<std::string, process> all;
  std::vector<time_point> calls{start};

  static bool running(const process &each) {
    return each.state == process_state::alive || each.state == process_state::draining;
  }
  std::string alive(time_point now, const process_entry &entry) {
    calls.push_back(now);
    const auto known = all.find(entry.process);
    const bool there = known != all.end();
    if (there && (known->second.incarnation > entry.incarnation ||
                  (known->second.incarnation == entry.incarnation &&
                   known->second.state == process_state::left)))
      return "superseded";
    for (const auto &[name, other] : all)
      if (name != entry.process && running(other) && other.actor == entry.actors.at(0).name)
        return "conflict";
    const bool same = there && known->second.incarnation == entry.incarnation;
    const bool was_running = same && running(known->second);
    const auto state = was_running ? known->second.state : process_state::alive;
    all[entry.process] = {entry.incarnation, state, entry.actors.at(0).name, now};
    return was_running ? "renewed" : "added";
  }
  std::set<std::string> expire(time_point now) {
    calls.push_back(now);
    bool asleep = now - start < lease;
    for (std::size_t i = 1; i < calls.size(); ++i)
      asleep = asleep || (calls[i] - calls[i - 1] > lease / 2 && now - calls[i] < lease);
    std::set<std::string> gone;
    if (!asleep)
      for (auto &[name, each] : all)
        if (running(each) && now - each.renewed > lease) {
          each.state = process_state::gone;
          gone.insert(name);
        }
    return gone;
  }
  bool drain(const std::string &name) {
    const auto known = all.find(name);
    if (known == all.end() || !running(known->second))
      return false;
    if (known->second.state == process_state::draining)
      return true;
    const bool last = std::none_of(all.begin(), all.end(), [&](const auto &other) {
      return other.first != name && other.second.state == process_state::alive;
    });
    if (last)
      return false;
    known->second.state = process_state::draining;
    return true;
  }
};

std::string outcome(const result<registration> &got) {
  if (!got)
    return "conflict";
  return *got == registration::added     ? "added"
         : *got == registration::renewed ? "renewed"
                                         : "superseded";
}

BOOST_AUTO_TEST_CASE(random_operations_agree_with_a_simple_model) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    BOOST_TEST_CONTEXT("seed " << seed) {
      random_source random(seed);
      auto table = table_at(start);
      model expected;
      std::map<std::string, process_entry> mirror; // of one who was told every change
      time_point now = start;
      for (int i = 0; i < 500; ++i) {
        now += std::chrono::milliseconds(random.chance(2) ? 5'500 : random.below(900));
        const std::string name = "p" + std::to_string(random.below(5));
        const auto incarnation = 1 + random.below(3) + static_cast<std::uint64_t>(i) / 100;
        auto who = news(name, role::scorer, incarnation);
        who.entry.actors[0].name = "s" + std::to_string(random.below(12));
        if (const auto known = expected.all.find(name);
            known != expected.all.end() && random.chance(70)) { // a plain renewal
          who.entry.incarnation = known->second.incarnation;
          who.entry.actors[0].name = known->second.actor;
        }
        const auto choice = random.below(100);
        if (choice < 60) {
          BOOST_TEST(outcome(table.alive(now, who)) == expected.alive(now, who.entry));
        } else if (choice < 65) {
          table.leaves(now, {name, who.entry.incarnation});
          expected.calls.push_back(now);
          if (const auto known = expected.all.find(name);
              known != expected.all.end() && known->second.incarnation == who.entry.incarnation)
            known->second.state = process_state::left;
        } else if (choice < 70) {
          BOOST_TEST(table.drain(name).has_value() == expected.drain(name));
        } else {
          std::set<std::string> gone;
          for (const auto &each : table.expire(now))
            gone.insert(each.process);
          BOOST_TEST((gone == expected.expire(now)));
        }
        if (random.chance(20))
          for (const auto &each : flat(table.changes()))
            mirror[each.process] = each;
      }
      for (const auto &each : flat(table.changes()))
        mirror[each.process] = each;
      const auto known = flat(table.view());
      BOOST_TEST(known.size() == expected.all.size());
      for (const auto &each : known) {
        BOOST_TEST((each.state == expected.all.at(each.process).state));
        BOOST_TEST(each.incarnation == expected.all.at(each.process).incarnation);
        BOOST_TEST((mirror.at(each.process) == each));
      }
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
} // namespace millrace::test
