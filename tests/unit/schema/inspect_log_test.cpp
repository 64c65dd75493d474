// SPDX-License-Identifier: Apache-2.0
#include "schema/inspect_log.hpp"

#include <string>

#include "runtime/file.hpp"
#include "tests/support/sample_log.hpp"
#include "tests/support/temporary_folder.hpp"

#include <boost/test/unit_test.hpp>

namespace millrace {
namespace {

/// The file of these records.
std::string bytes_of(const std::vector<log_record> &records) {
  const test::temporary_folder folder;
  auto log = planner_log::open(folder / "log", {.sync = false},
                               [](std::uint64_t, const log_record &) -> status { return {}; })
                 .value();
  for (const auto &record : records)
    BOOST_REQUIRE(log.append(record));
  return read_file(folder / "log", 1 << 20).value();
}

result<log_summary> inspected(const std::string &bytes) {
  return inspect_log(frame::copy_of(std::as_bytes(std::span(bytes))), "log");
}

std::uint64_t count(const std::array<std::uint64_t, episode_state_count> &counts,
                    episode_state state) {
  return counts[static_cast<std::size_t>(state)];
}

BOOST_AUTO_TEST_CASE(steps_are_those_that_hold_with_how_far_they_got) {
  const auto summary = inspected(bytes_of(test::sample_log())).value();
  using mark = step_summary::mark;
  BOOST_REQUIRE(summary.steps.size() == 3U);
  BOOST_TEST((summary.steps.at(1).reached == mark::durable));
  BOOST_TEST((summary.steps.at(2).reached == mark::trained));
  BOOST_TEST((summary.steps.at(3).reached == mark::committed));
  BOOST_TEST(summary.steps.at(2).digest.hex() == std::string(32, '4'));
  BOOST_TEST(summary.steps.at(2).tokens == 200U);
  BOOST_TEST(summary.steps.at(2).micro_batches == 2U);
  BOOST_TEST(summary.steps.at(2).totals.value().ce == 50);
  BOOST_TEST(!summary.steps.at(3).totals.has_value());
}

BOOST_AUTO_TEST_CASE(every_episode_has_one_state) {
  const auto summary = inspected(bytes_of(test::sample_log())).value();
  const auto all = summary.states();
  // Groups: 0, 1, 4, 5 in trained steps, 7 in a committed one, 3 rolled back, 2 and 6 outside.
  // Group 4 was free again.
  BOOST_TEST(all.groups == 8U);
  BOOST_TEST(count(all.episodes, episode_state::trained) == 4U);
  BOOST_TEST(count(all.episodes, episode_state::held) == 1U);
  BOOST_TEST(count(all.episodes, episode_state::rolled_back) == 1U);
  BOOST_TEST(count(all.episodes, episode_state::expired) == 1U);
  BOOST_TEST(count(all.episodes, episode_state::gated) == 1U);
  BOOST_TEST(count(all.episodes, episode_state::errored) == 8U);
  BOOST_TEST(count(all.samples, episode_state::rolled_back) == 2U);
  BOOST_TEST(count(all.tokens, episode_state::rolled_back) == 100U);
  BOOST_TEST(count(all.tokens, episode_state::trained) == 400U);
  BOOST_TEST(all.cut_tokens == 8 * 7U);
  BOOST_TEST(summary.outside.groups == 2U);
}

BOOST_AUTO_TEST_CASE(starts_jobs_and_rollbacks_are_told_in_order) {
  const auto text = text_of(inspected(bytes_of(test::sample_log())).value());
  std::size_t at = 0;
  for (const auto *line : {"after step 0      start 1: millrace 0.1.0, config c0ffee, 2 ranks\n",
                           "after step 0      generation 1 of the trainer, from step 1\n",
                           "after step 3      start 2: millrace 0.1.0",
                           "after step 3      steps 2 to 3 rolled back, 2 to 2 had been trained\n",
                           "after step 1      generation 2 of the trainer, from step 2\n"}) {
    const auto found = text.find(line, at);
    BOOST_TEST_REQUIRE(found != std::string::npos, line << " is missing or too early:\n" << text);
    at = found;
  }
  BOOST_TEST(text.find("steps     3 committed, 2 trained, 1 durable\n") != std::string::npos, text);
  BOOST_TEST(text.find("damage") == std::string::npos, text);
}

BOOST_AUTO_TEST_CASE(a_log_without_a_record_is_shown) {
  for (const auto &bytes : {std::string(), bytes_of({})}) {
    const auto summary = inspected(bytes).value();
    BOOST_TEST(text_of(summary).find("no step\n") != std::string::npos, text_of(summary));
    BOOST_TEST(json_of(summary)["run"].is_null());
    BOOST_TEST(json_of(summary)["torn_tail"].is_null());
  }
}

BOOST_AUTO_TEST_CASE(a_torn_tail_is_told_and_no_damage) {
  const auto bytes = bytes_of(test::sample_log());
  const auto summary = inspected(bytes.substr(0, bytes.size() - 1)).value();
  BOOST_TEST(summary.damage == "");
  BOOST_TEST(summary.steps.size() == 2U);
  BOOST_TEST(summary.torn.value().offset + summary.torn.value().bytes == bytes.size() - 1);
  BOOST_TEST(json_of(summary)["torn_tail"]["bytes"] == summary.torn->bytes);
  BOOST_TEST(text_of(summary).find("torn tail: ") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(what_stands_before_damage_is_shown_with_it) {
  auto bytes = bytes_of(test::sample_log());
  bytes[bytes_of({test::sample_log()[0], test::sample_log()[1]}).size() + 50] ^= 1;
  const auto summary = inspected(bytes).value();
  BOOST_TEST(summary.events.size() == 2U);
  BOOST_TEST(summary.outside.groups == 0U);
  BOOST_TEST(summary.damage.find("offset ") != std::string::npos, summary.damage);
  BOOST_TEST(json_of(summary)["damaged"] == true);
  BOOST_TEST(text_of(summary).find("damage: ") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_file_of_another_kind_is_no_summary) {
  const auto other = inspected("something else");
  BOOST_REQUIRE(!other);
  BOOST_TEST((other.error().code == errc::bad_format), other.error().message);
}

} // namespace
} // namespace millrace
