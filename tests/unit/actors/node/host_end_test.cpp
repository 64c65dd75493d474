// SPDX-License-Identifier: Apache-2.0
// What a host sends to other processes: the end, in order, and hunger. The other processes are hubs
// that keep what comes.
#include <algorithm>
#include <map>

#include "actors/node/codec.hpp"
#include "tests/unit/actors/node/host_fixture.hpp"

namespace millrace::test {
namespace {

struct end_fixture : host_fixture {
  std::map<std::string, std::unique_ptr<host>> others;
  std::uint64_t next_incarnation = 10;

  /// A process with these actors that listens and is known to the host.
  void add(const std::string &process, const std::vector<role> &actors) {
    const auto incarnation = ++next_incarnation;
    others[process] = listening(process, incarnation);
    auto it = entry(role::host, process, incarnation);
    it.actors.clear();
    for (const auto what : actors)
      it.actors.push_back({what, fmt::format("{}-of-{}", to_string(what), process)});
    view({it});
  }
  void end(const std::string &failure = {}) { world.tell(*subject, end_others{failure}); }
  /// The orders to end that have come to a process, once it has `count`.
  std::vector<end_run> orders(const std::string &process, std::size_t count = 1) {
    std::vector<end_run> out;
    for (const auto &one : mail(*others.at(process), count))
      out.push_back(std::get<end_run>(one.what));
    return out;
  }
  bool is_left_alone(const std::string &process) { return others.at(process)->log.count() == 0; }
  bool ended() { return !supervisor.got<others_ended>().empty(); }
};

BOOST_FIXTURE_TEST_SUITE(the_end_of_others, end_fixture)

BOOST_AUTO_TEST_CASE(sources_end_first_trainers_later_and_the_directory_last) {
  begin(role::planner);
  // Known in another order than that in which they end.
  add("trainer-0", {role::trainer});
  add("packer-0", {role::packer});
  add("scorer-0", {role::scorer});
  add("the-directory", {role::directory});
  add("env-reader-0", {role::env_reader});
  add("assembler-0", {role::assembler});
  end("a reason");
  const lines order{"env-reader-0", "assembler-0", "scorer-0",
                    "packer-0",     "trainer-0",   "the-directory"};
  for (std::size_t i = 0; i < order.size(); ++i) {
    BOOST_TEST(orders(order[i])[0].failure == "a reason");
    for (std::size_t later = i + 1; later < order.size(); ++later)
      BOOST_TEST(is_left_alone(order[later]), order[later]);
    BOOST_TEST(!ended());
    report(order[i]);
  }
  BOOST_REQUIRE(ended());
  lines reported;
  for (const auto &one : supervisor.got<others_ended>()[0].reports)
    reported.push_back(one.process);
  BOOST_TEST((reported == order));
}

BOOST_AUTO_TEST_CASE(a_stage_ends_together_and_is_waited_for_as_a_whole) {
  begin(role::planner);
  add("scorer-0", {role::scorer});
  add("scorer-1", {role::scorer});
  add("packer-0", {role::packer});
  end();
  orders("scorer-0");
  orders("scorer-1");
  report("scorer-1");
  BOOST_TEST(is_left_alone("packer-0"));
  report("scorer-0");
  orders("packer-0");
}

BOOST_AUTO_TEST_CASE(a_process_of_several_roles_ends_with_the_last_of_them) {
  begin(role::planner);
  add("mixed", {role::trainer, role::env_reader});
  add("packer-0", {role::packer});
  end();
  orders("packer-0");
  BOOST_TEST(is_left_alone("mixed"));
  report("packer-0");
  orders("mixed");
}

BOOST_AUTO_TEST_CASE(without_other_processes_the_end_is_there_at_once) {
  begin(role::planner);
  end();
  BOOST_TEST(ended());
}

BOOST_AUTO_TEST_CASE(a_process_without_actors_ends_like_others) {
  begin(role::planner);
  add("empty", {});
  end();
  orders("empty");
  report("empty");
  BOOST_TEST(ended());
}

BOOST_AUTO_TEST_CASE(one_that_is_lost_before_it_reports_is_not_waited_for) {
  begin(role::planner);
  add("scorer-0", {role::scorer});
  add("packer-0", {role::packer});
  end();
  orders("scorer-0");
  auto it = entry(role::scorer, "scorer-0", 11, process_state::gone);
  view({it});
  orders("packer-0");
}

BOOST_AUTO_TEST_CASE(one_that_comes_while_others_end_is_told_at_once_and_waited_for) {
  begin(role::planner);
  add("packer-0", {role::packer});
  end("a reason");
  orders("packer-0");
  add("late", {role::scorer});
  BOOST_TEST(orders("late")[0].failure == "a reason");
  report("packer-0");
  BOOST_TEST(!ended());
  report("late");
  BOOST_TEST(ended());
}

// It was started again as the last ones ended: nobody tells it of the planner, so its report never
// comes.
BOOST_AUTO_TEST_CASE(
    one_that_comes_when_the_directory_has_ended_is_not_waited_for_once_it_is_gone) {
  options.lease = std::chrono::milliseconds(0);
  begin(role::planner);
  add("the-directory", {role::directory});
  end();
  orders("the-directory");
  add("late", {role::trainer});
  orders("late");
  link("late", next_incarnation, link_state::up);
  report("the-directory");
  tick();
  BOOST_TEST(!ended());
  link("late", next_incarnation, link_state::down);
  tick();
  BOOST_TEST(ended());
}

BOOST_AUTO_TEST_CASE(a_second_word_of_the_end_changes_nothing) {
  begin(role::planner);
  add("scorer-0", {role::scorer});
  end();
  end();
  orders("scorer-0");
  report("scorer-0");
  BOOST_TEST(supervisor.got<others_ended>().size() == 1U);
}

BOOST_AUTO_TEST_CASE(who_leaves_reports_to_the_planners_process_and_takes_leave_of_the_directory) {
  begin(role::scorer);
  add("planning", {role::planner});
  add("directory", {role::directory});
  link("directory", 0, link_state::up);
  world.ask<has_left>(*subject, leave_run{{"here", "{}"}, false});
  const auto report = mail(*others.at("planning"), 1).at(0);
  BOOST_TEST(std::get<process_report>(report.what).process == "here");
  // A lease may have been renewed before it.
  BOOST_TEST(eventually([&] {
    return std::ranges::any_of(mail(*others.at("directory"), 1), [](const auto &one) {
      return std::holds_alternative<process_leaves>(one.what);
    });
  }));
}

// Should it come back, it must begin anew: others have its work.
BOOST_AUTO_TEST_CASE(the_directory_hears_who_was_given_up) {
  begin(role::assembler);
  add("directory", {role::directory});
  link("directory", 0, link_state::up);
  view({entry(role::scorer, "scorer-1", 7)});
  tell(office->find({"scorer-1", 7}), hunger{true}); // it has had work
  view({entry(role::scorer, "scorer-1", 7, process_state::gone)});
  BOOST_TEST(eventually([&] {
    return std::ranges::any_of(mail(*others.at("directory"), 1), [](const auto &one) {
      const auto *lost = std::get_if<process_lost>(&one.what);
      return lost != nullptr && lost->process == "scorer-1" && lost->incarnation == 7;
    });
  }));
}

BOOST_AUTO_TEST_SUITE_END()

struct hunger_fixture : end_fixture {
  /// Whether it is told that there is hunger, each time.
  std::vector<bool> told(const std::string &process, std::size_t count) {
    BOOST_REQUIRE(others.at(process)->log.wait_for(count));
    std::vector<bool> out;
    for (const auto &one : others.at(process)->log.arrivals()) {
      const auto in = decode(
                          one.parts, [](const peer_id &) { return peer(); }, nullptr)
                          .value();
      BOOST_TEST(in.to == "host");
      out.push_back(std::get<hunger>(in.what.what).hungry);
    }
    return out;
  }
};

BOOST_FIXTURE_TEST_SUITE(hunger_goes_everywhere, hunger_fixture)

BOOST_AUTO_TEST_CASE(the_planners_process_tells_every_other_of_changes) {
  begin(role::planner);
  add("assembler-0", {role::assembler});
  add("packer-0", {role::packer});
  world.tell(*subject, hunger{true});
  world.tell(*subject, hunger{false});
  BOOST_TEST((told("assembler-0", 2) == std::vector<bool>{true, false}));
  BOOST_TEST((told("packer-0", 2) == std::vector<bool>{true, false}));
}

// A planner is hungry before anybody is there.
BOOST_AUTO_TEST_CASE(who_comes_while_there_is_hunger_is_told) {
  begin(role::planner);
  world.tell(*subject, hunger{true});
  add("assembler-0", {role::assembler});
  BOOST_TEST((told("assembler-0", 1) == std::vector<bool>{true}));
  world.tell(*subject, hunger{false});
  add("assembler-1", {role::assembler});
  world.tell(*subject, hunger{true});
  BOOST_TEST((told("assembler-1", 1) == std::vector<bool>{true}));
}

BOOST_AUTO_TEST_CASE(other_processes_pass_nothing_on) {
  begin(role::assembler);
  add("scorer-0", {role::scorer});
  world.tell(*subject, hunger{true});
  office->send("scorer-0",
               host_parcel{end_run{{}, false}}); // what was sent before it has come before it
  BOOST_TEST(mail(*others.at("scorer-0"), 1).size() == 1U);
  BOOST_TEST(others.at("scorer-0")->log.count() == 1U);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
} // namespace millrace::test
