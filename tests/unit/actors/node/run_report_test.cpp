// SPDX-License-Identifier: Apache-2.0
#include "actors/node/run_report.hpp"

#include <chrono>
#include <string>

#include <boost/test/unit_test.hpp>

namespace millrace {
namespace {

BOOST_AUTO_TEST_SUITE(run_report_suite)

run_report some_report() {
  run_report out;
  out.process = "env-reader-0";
  out.counters->tokens = 18'446'744'073'709'551'615U;
  out.counters->wire_bytes = 7;
  out.counters->stages.pack.nanoseconds = 11;
  out.counters->stages.digest.bytes = 13;
  out.counters->memory->held_peak = 17;
  out.counters->memory->copied = 19;
  out.turns = {3, std::chrono::milliseconds(25), "planner"};
  out.peak_rss_bytes = 1 << 20;
  out.quarantine = "state/quarantine.jsonl";
  auto counts = std::make_shared<recording_counts>();
  counts->episodes = 5;
  counts->unfinished = 1;
  counts->repeats = 2;
  counts->groups.push_back({{"run", "env", "7", "g\"0\n"}, 8, 1, 2, 3, 4, 50, 600});
  counts->conflicts = {"group g0 has size 8 and size 9"};
  out.sources.push_back({0, counts, {{4096, 112, "its checksum differs"}}, true});
  out.sources.push_back({1, nullptr, {}, false});
  return out;
}

std::string text_of(const run_report &report) { return json::dump(to_json(report)); }

/// The error of reading a report in which one piece of text stands for another.
std::string refusal(const std::string &piece, const std::string &instead) {
  auto text = text_of(some_report());
  const auto at = text.find(piece);
  BOOST_REQUIRE_MESSAGE(at != std::string::npos, piece);
  text.replace(at, piece.size(), instead);
  const auto read = run_report_from_json(text);
  return read ? "" : read.error().message;
}

BOOST_AUTO_TEST_CASE(a_report_comes_back_as_it_was) {
  const auto read = run_report_from_json(text_of(some_report()));
  BOOST_REQUIRE_MESSAGE(read, read.error().message);
  BOOST_TEST(text_of(*read) == text_of(some_report()));
  BOOST_TEST(read->counters->tokens == 18'446'744'073'709'551'615U);
  BOOST_TEST(read->counters->stages.pack.nanoseconds == 11U);
  BOOST_TEST(read->counters->memory->held_peak == 17U);
  BOOST_TEST((read->turns.longest == std::chrono::milliseconds(25)));
  BOOST_TEST(read->turns.longest_actor == "planner");
  BOOST_TEST(read->quarantine == "state/quarantine.jsonl");
  BOOST_REQUIRE(read->sources.size() == 2U);
  const auto &source = read->sources[0];
  BOOST_REQUIRE(source.counts);
  BOOST_TEST((source.counts->groups[0].key == group_key{"run", "env", "7", "g\"0\n"}));
  BOOST_TEST(source.counts->groups[0].rejected == 4U);
  BOOST_TEST(source.counts->conflicts.size() == 1U);
  BOOST_TEST(source.damage[0].reason == "its checksum differs");
  BOOST_TEST(source.torn);
  BOOST_TEST(!read->sources[1].counts);
}

BOOST_AUTO_TEST_CASE(an_empty_report_comes_back_too) {
  const auto read = run_report_from_json(text_of({}));
  BOOST_REQUIRE(read);
  BOOST_TEST(text_of(*read) == text_of({}));
}

BOOST_AUTO_TEST_CASE(what_is_wrong_is_named_by_its_path) {
  const auto names = [](const std::string &problem, std::string_view path) {
    return problem.find(fmt::format("run report: {}", path)) == 0;
  };
  BOOST_TEST(names(refusal(R"("wire_bytes":7)", R"("wire_bytes":-7)"), "counters.wire_bytes"));
  BOOST_TEST(names(refusal(R"("wire_bytes":7)", R"("wire_bytes":7.5)"), "counters.wire_bytes"));
  BOOST_TEST(names(refusal(R"("wire_bytes":7)", R"("wires":7)"), "counters"));
  BOOST_TEST(
      names(refusal(R"("nanoseconds":11)", R"("nanoseconds":"11")"), "stages.pack.nanoseconds"));
  BOOST_TEST(names(refusal(R"("copied":19)", R"("copied":null)"), "memory.copied"));
  BOOST_TEST(names(refusal(R"("process":"env-reader-0")", R"("process":[])"), "process"));
  BOOST_TEST(
      names(refusal(R"("errored":2)", R"("errored":4294967296)"), "sources[0].counts.groups[0]"));
  BOOST_TEST(names(refusal(R"("offset":4096)", R"("offset":[])"), "sources[0].damage[0].offset"));
  BOOST_TEST(names(refusal(R"(["group g0)", R"([1,"group g0)"), "sources[0].counts.conflicts[0]"));
  BOOST_TEST(names(refusal(R"("torn":true)", R"("torn":1)"), "sources[0].torn"));
  BOOST_TEST(names(refusal(R"("sources":[{)", R"("sources":[1,{)"), "sources[0]"));
}

BOOST_AUTO_TEST_CASE(any_prefix_of_a_report_is_refused) {
  const auto text = text_of(some_report());
  for (std::size_t size = 0; size < text.size(); ++size)
    BOOST_REQUIRE(!run_report_from_json(std::string_view(text).substr(0, size)));
}

BOOST_AUTO_TEST_CASE(numbers_add_up_and_the_longest_turn_is_the_longest_of_both) {
  auto sum = some_report();
  sum.counters->tokens = 1;
  run_report one;
  one.counters->tokens = 2;
  one.counters->stages.pack.nanoseconds = 4;
  one.counters->memory->held_peak = 8;
  one.turns = {1, std::chrono::milliseconds(12), "scorer-1"};
  one.peak_rss_bytes = 5;
  one.sources.push_back({2, nullptr, {}, false});
  add(sum, one);
  BOOST_TEST(sum.counters->tokens == 3U);
  BOOST_TEST(sum.counters->wire_bytes == 7U);
  BOOST_TEST(sum.counters->stages.pack.nanoseconds == 15U);
  BOOST_TEST(sum.counters->memory->held_peak == 25U);
  BOOST_TEST(sum.turns.long_turns == 4U);
  BOOST_TEST(sum.turns.longest_actor == "planner");
  BOOST_TEST(sum.peak_rss_bytes == (1U << 20) + 5);
  BOOST_TEST(sum.sources.size() == 3U);
  BOOST_TEST(sum.quarantine == "state/quarantine.jsonl");
  BOOST_TEST(sum.process == "env-reader-0");
  one.turns.longest = std::chrono::seconds(1);
  one.quarantine = "other.jsonl";
  add(sum, one);
  BOOST_TEST(sum.turns.longest_actor == "scorer-1");
  BOOST_TEST(sum.quarantine == "state/quarantine.jsonl, other.jsonl");
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
} // namespace millrace
