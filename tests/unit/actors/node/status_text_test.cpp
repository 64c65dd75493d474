// SPDX-License-Identifier: Apache-2.0
#include "actors/node/status_text.hpp"

#include <algorithm>

#include <boost/test/unit_test.hpp>

#include "tests/unit/actors/node/answers.hpp"

namespace millrace::test {
namespace {

status_answer answer_of(std::vector<status_line> processes) {
  return {"maths", std::move(processes)};
}

status_line scorer_with(std::uint64_t uptime_ms, std::uint64_t groups, std::uint64_t bytes) {
  auto scorer = process_of("scorer-0", role::scorer);
  scorer.status.uptime_ms = uptime_ms;
  scorer.status.counters = {{"groups", groups}, {"read_bytes", bytes}};
  return scorer;
}

bool has(const std::string &text, const std::string &part) {
  return text.find(part) != std::string::npos;
}

/// Columns one space apart.
std::string squeezed(std::string text) {
  text.erase(
      std::unique(text.begin(), text.end(), [](char a, char b) { return a == ' ' && b == ' '; }),
      text.end());
  return text;
}

BOOST_AUTO_TEST_SUITE(status_text_suite)

BOOST_AUTO_TEST_CASE(the_table_has_a_line_for_each_process_by_stage_and_number) {
  auto scorer = process_of("scorer-10", role::scorer);
  scorer.entry.actors = {
      {role::scorer, "scorer-10"}, {role::scorer, "b"}, {role::packer, "c"}, {role::host, "h"}};
  scorer.status.held = std::uint64_t{3} << 29;
  scorer.status.limit = std::uint64_t{10} << 30;
  scorer.status.in_flight = 2'048;
  auto gone = process_of("scorer-2", role::scorer);
  gone.entry.state = process_state::gone;
  gone.age_ms = 30'000;
  BOOST_TEST(squeezed(status_text(answer_of({scorer, gone}), nullptr)) ==
             "run maths: 1 alive, 1 gone\n"
             "process actors host:pid state up held in flight version news rates\n"
             "scorer-2 scorer node1:4121 gone 100 s 0.1.0 30 s\n"
             "scorer-10 scorer x2, packer node1:4121 alive 100 s 15% (1.5 GiB of 10.0 GiB) "
             "2.0 KiB 0.1.0 0.2 s\n");
}

BOOST_AUTO_TEST_CASE(an_empty_system_is_one_line) {
  BOOST_TEST(status_text(answer_of({}), nullptr) == "run maths: no process is registered\n");
}

BOOST_AUTO_TEST_CASE(how_far_the_run_is_stands_above_the_table_and_has_no_rate) {
  auto planner = process_of("planner", role::planner);
  planner.status.counters = {{"version", 12}, {"next_step", 14}, {"backlog_steps", 1}};
  const auto text = status_text(answer_of({planner}), nullptr);
  BOOST_TEST(has(text, "run maths: 1 alive\n"
                       "policy version 12, step 14 is collected, 1 steps' worth of groups wait\n"));
  BOOST_TEST(!has(text, "/s"));
  planner.entry.state = process_state::gone;
  BOOST_TEST(!has(status_text(answer_of({planner}), nullptr), "policy version"));
}

BOOST_AUTO_TEST_CASE(rates_are_those_between_two_answers) {
  const auto before = answer_of({scorer_with(100'000, 1'000, 0)});
  const auto now = answer_of({scorer_with(102'000, 1'024, 4'096)});
  BOOST_TEST(has(status_text(now, &before), "  groups 12/s, read_bytes 2.0 KiB/s\n"));
}

BOOST_AUTO_TEST_CASE(rates_since_the_start_are_marked) {
  const auto now = answer_of({scorer_with(100'000, 250, 0)});
  BOOST_TEST(has(status_text(now, nullptr), "  ~groups 2.5/s, read_bytes 0 B/s\n"));
  BOOST_TEST(has(status_text(now, &now), "  ~groups 2.5/s")); // no newer news
}

BOOST_AUTO_TEST_CASE(another_incarnation_has_counted_something_else) {
  auto before = answer_of({scorer_with(1'000, 900, 0)});
  before.processes[0].entry.incarnation = 0;
  const auto now = answer_of({scorer_with(2'000, 5, 0)});
  BOOST_TEST(has(status_text(now, &before), "  ~groups 2.5/s"));
}

BOOST_AUTO_TEST_CASE(a_count_that_fell_is_no_rate) {
  const auto before = answer_of({scorer_with(100'000, 1'000, 0)});
  const auto now = answer_of({scorer_with(101'000, 10, 0)});
  BOOST_TEST(has(status_text(now, &before), "groups 0.0/s"));
}

BOOST_AUTO_TEST_CASE(a_process_without_news_is_marked) {
  auto scorer = process_of("scorer-0", role::scorer);
  scorer.age_ms = old_news_ms - 1;
  BOOST_TEST(!has(status_text(answer_of({scorer}), nullptr), "!"));
  scorer.age_ms = old_news_ms;
  const auto text = status_text(answer_of({scorer}), nullptr);
  BOOST_TEST(has(text, "  5.0 s !\n"));
  BOOST_TEST(has(text, "\n! no news: "));
  scorer.entry.state = process_state::left; // nothing more is to come
  BOOST_TEST(!has(status_text(answer_of({scorer}), nullptr), "!"));
}

BOOST_AUTO_TEST_CASE(names_cannot_move_the_cursor) {
  auto scorer = process_of("a\x1b[2J\nb", role::scorer, {{"w\x1b[1m", "x\ny", "z\n", 1}});
  scorer.status.host = "h\n";
  scorer.status.program = "\x1b";
  scorer.status.counters = {{"c\n", 1}};
  const auto answer = answer_of({scorer});
  const auto text = status_text(answer, nullptr) + why_text(answer);
  BOOST_TEST(!has(text, "\x1b"));
  BOOST_TEST(std::count(text.begin(), text.end(), '\n') == 6); // header, 2 rows, note, link, end
}

BOOST_AUTO_TEST_CASE(why_is_one_line_for_each_link) {
  const auto answer = answer_of(
      {waiting("trainer-3", role::trainer, "step 12", "planner", 412),
       waiting("planner", role::planner, "has 127/128 traces", "assembler", 410),
       waiting("assembler-1", role::assembler, "1 of 8 episodes of group maths/7/g17", "", 412)});
  BOOST_TEST(why_text(answer) == "trainer-3 waits for step 12 (412 s)\n"
                                 "planner has 127/128 traces (410 s)\n"
                                 "assembler-1 waits for 1 of 8 episodes of group maths/7/g17 "
                                 "(412 s)\n");
  BOOST_TEST(why_line(answer) == "trainer-3 waits for step 12 (412 s); planner has 127/128 traces "
                                 "(410 s); assembler-1 waits for 1 of 8 episodes of group "
                                 "maths/7/g17 (412 s)");
}

BOOST_AUTO_TEST_CASE(several_trainers_are_counted) {
  auto answer = answer_of({waiting("trainer-0", role::trainer, "step 1", "", 2),
                           waiting("trainer-1", role::trainer, "step 1", "", 1)});
  BOOST_TEST(why_text(answer) == "trainer-0 and 1 other wait for step 1 (2.2 s)\n");
  answer.processes.push_back(waiting("trainer-2", role::trainer, "step 1", "", 1));
  BOOST_TEST(why_text(answer) == "trainer-0 and 2 others wait for step 1 (2.2 s)\n");
}

BOOST_AUTO_TEST_CASE(why_says_where_a_chain_ends) {
  BOOST_TEST(why_text(answer_of({waiting("trainer-0", role::trainer, "step 1", "trainer-0", 2)})) ==
             "trainer-0 waits for step 1 (2.2 s)\n"
             "this is a loop: back to trainer-0\n");
}

BOOST_AUTO_TEST_CASE(why_has_an_empty_line_between_chains) {
  BOOST_TEST(why_text(answer_of({waiting("trainer-0", role::trainer, "step 1", "", 2),
                                 waiting("trainer-1", role::trainer, "step 2", "", 1)})) ==
             "trainer-0 waits for step 1 (2.2 s)\n"
             "\n"
             "trainer-1 waits for step 2 (1.2 s)\n");
}

BOOST_AUTO_TEST_CASE(why_says_which_link_is_old_news) {
  auto trainer = waiting("trainer-0", role::trainer, "step 1", "", 2);
  trainer.age_ms = 8'000;
  BOOST_TEST(why_text(answer_of({trainer})) ==
             "trainer-0 waits for step 1 (10 s; no news of its process for 8.0 s)\n");
}

BOOST_AUTO_TEST_CASE(nothing_to_explain_is_one_line) {
  BOOST_TEST(why_text(answer_of({})) == "no process is registered\n");
  BOOST_TEST(why_line(answer_of({process_of("a", role::scorer)})) == "nothing waits");
}

BOOST_AUTO_TEST_CASE(status_for_programs_has_every_field) {
  auto scorer = scorer_with(100'000, 250, 0);
  scorer.status.waits = {{"scorer-0", "groups", "assembler", 7}};
  scorer.status.mapped = 5;
  const auto tree = status_json(answer_of({scorer}), nullptr);
  BOOST_TEST(json::dump(tree) ==
             R"({"run":"maths","processes":[{"process":"scorer-0","incarnation":1,)"
             R"("endpoint":"tcp://10.0.0.1:7000","state":"alive",)"
             R"("actors":[{"role":"scorer","name":"scorer-0"}],"registered_ms":100200,)"
             R"("age_ms":200,"silent":false,"status":{"host":"node1","pid":4121,)"
             R"("program":"0.1.0","uptime_ms":100000,"held":0,"mapped":5,"limit":0,"peak_rss":0,)"
             R"("in_flight":0,"counters":{"groups":250,"read_bytes":0},)"
             R"("waits":[{"who":"scorer-0","what":"groups","on":"assembler","ms":7}]},)"
             R"("rates_since_start":true,"rates":{"groups":2.5,"read_bytes":0.0}}]})");
}

BOOST_AUTO_TEST_CASE(why_for_programs_has_chains_and_their_end) {
  const auto tree =
      why_json(answer_of({waiting("trainer-0", role::trainer, "step 1", "scorer", 2)}));
  BOOST_TEST(json::dump(tree) ==
             R"({"run":"maths","note":"","chains":[{"links":[{"who":"trainer-0","others":0,)"
             R"("what":"step 1","on":"scorer","ms":2200,"silent_ms":0}],)"
             R"("end":"there is no scorer"}]})");
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
} // namespace millrace::test
