// SPDX-License-Identifier: Apache-2.0
#include "actors/node/progress_watch.hpp"

#include <boost/test/unit_test.hpp>

#include "tests/unit/actors/node/answers.hpp"

namespace millrace::test {
namespace {

using namespace std::chrono_literals;

const progress_watch::time_point start{1000s};

BOOST_AUTO_TEST_SUITE(progress_watch_suite)

BOOST_AUTO_TEST_CASE(an_alarm_comes_once_per_limit_without_a_step) {
  progress_watch watch({10, false}, start);
  std::vector<std::int64_t> alarms;
  for (auto now = start; now <= start + 31s; now += 500ms)
    if (const auto alarm = watch.look(now, 0))
      alarms.push_back(alarm->still.count());
  BOOST_TEST((alarms == std::vector<std::int64_t>{10'000, 20'000, 30'000}));
}

BOOST_AUTO_TEST_CASE(a_step_starts_the_limit_anew) {
  progress_watch watch({10, false}, start);
  BOOST_TEST(!watch.look(start + 9s, 1).has_value());
  BOOST_TEST(!watch.look(start + 18s, 1).has_value());
  const auto alarm = watch.look(start + 19s, 1);
  BOOST_TEST(alarm.has_value());
  BOOST_TEST(alarm->steps == 1U);
  BOOST_TEST(alarm->still.count() == 10'000);
}

BOOST_AUTO_TEST_CASE(a_late_look_is_one_alarm) {
  progress_watch watch({10, false}, start);
  BOOST_TEST(watch.look(start + 95s, 0)->still.count() == 95'000);
  BOOST_TEST(!watch.look(start + 96s, 0).has_value());
}

BOOST_AUTO_TEST_CASE(no_limit_no_alarm) {
  progress_watch watch({0, true}, start);
  BOOST_TEST(!watch.look(start + 1000h, 0).has_value());
}

BOOST_AUTO_TEST_CASE(an_alarm_stops_the_run_only_where_the_config_says_so) {
  for (const bool stop : {false, true})
    BOOST_TEST(progress_watch({10, stop}, start).look(start + 10s, 0)->stop == stop);
}

BOOST_AUTO_TEST_CASE(the_line_says_for_how_long_why_and_what_comes_of_it) {
  const status_answer answer{"maths",
                             {waiting("trainer-3", role::trainer, "step 12", "planner", 412)}};
  BOOST_TEST(no_progress_line({0, 300s, false}, answer) ==
             "no step was trained for 300 s: trainer-3 waits for step 12 (412 s); there is no "
             "planner");
  BOOST_TEST(no_progress_line({11, 300s, true}, answer) ==
             "no step was trained after step 11 for 300 s: trainer-3 waits for step 12 (412 s); "
             "there is no planner; the run is stopped (progress.stop)");
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
} // namespace millrace::test
