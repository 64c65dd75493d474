// SPDX-License-Identifier: Apache-2.0
#include "actors/supervisor.hpp"

#include <sstream>

#include <boost/test/unit_test.hpp>

#include "runtime/signals.hpp"

namespace millrace::test {
namespace {

using namespace std::chrono_literals;

run_state after(std::initializer_list<errc> failures) {
  run_state out;
  for (const auto code : failures)
    out.fail_with({code, std::string(to_string(code))});
  return out;
}

/// The supervisor of a process without a planner and without actors.
struct supervisor_fixture {
  signal_guard signals;
  caf::actor_system_config config;
  caf::actor_system system{config};
  caf::scoped_actor self{system};
  caf::scoped_actor planners_process{system};
  std::ostringstream out;
  run_counters counters;
  progress shown{out, false, counters};
  run_state state;
  pipeline stages;

  /// What it hears is in its mailbox already.
  void run() {
    supervisor subject(self, signals, shown, state);
    subject.run({.host = {},
                 .stages = &stages,
                 .has_planner = false,
                 .failures = caf::actor_cast<caf::actor>(planners_process),
                 .patience = 1ms},
                [] {});
  }
  void hear(run_failed what) { caf::anon_send(caf::actor_cast<caf::actor>(self), std::move(what)); }
  /// Failures that the planner's process was told.
  std::vector<run_failed> told() {
    std::vector<run_failed> failures;
    for (bool more = true; more;)
      planners_process->receive([&](const run_failed &in) { failures.push_back(in); },
                                caf::after(0ms) >> [&] { more = false; });
    return failures;
  }
};

BOOST_AUTO_TEST_SUITE(supervisors)

BOOST_AUTO_TEST_CASE(a_cause_replaces_a_wish_for_a_restart_which_replaces_a_mere_loss) {
  BOOST_TEST((after({errc::peer_lost, errc::restart}).failure->code == errc::restart));
  BOOST_TEST((after({errc::restart, errc::peer_lost}).failure->code == errc::restart));
  BOOST_TEST((after({errc::restart, errc::conflict}).failure->code == errc::conflict));
  BOOST_TEST((after({errc::conflict, errc::restart}).failure->code == errc::conflict));
  BOOST_TEST((after({errc::io, errc::conflict}).failure->code == errc::io));
}

BOOST_AUTO_TEST_CASE(the_run_is_not_over_for_a_process_that_is_to_be_started_again) {
  BOOST_TEST(!after({errc::restart}).over());
  BOOST_TEST(after({errc::restart}).wants_restart());
  BOOST_TEST(after({errc::io}).over());
  BOOST_TEST(after({}).over());
}

BOOST_FIXTURE_TEST_CASE(a_process_that_is_to_be_started_again_fails_nobody, supervisor_fixture) {
  hear({"trainer-1", {errc::restart, "lost rank 0"}});
  run();
  BOOST_TEST(state.wants_restart());
  BOOST_TEST(state.failure->message == "trainer-1: lost rank 0");
  BOOST_TEST(told().empty());
}

BOOST_FIXTURE_TEST_CASE(any_other_failure_is_told_to_the_planners_process, supervisor_fixture) {
  hear({"trainer-1", {errc::io, "no such device"}});
  caf::anon_send(caf::actor_cast<caf::actor>(self),
                 run_over{"trainer-1 failed", false, true, false});
  run();
  const auto failures = told();
  BOOST_REQUIRE_EQUAL(failures.size(), 1);
  BOOST_TEST((failures[0].what.code == errc::io));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
} // namespace millrace::test
