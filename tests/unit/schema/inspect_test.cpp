// SPDX-License-Identifier: Apache-2.0
#include "schema/inspect.hpp"

#include "runtime/file.hpp"
#include "schema/recording_writer.hpp"
#include "tests/support/episodes.hpp"
#include "tests/support/temporary_folder.hpp"

#include <boost/test/unit_test.hpp>

namespace millrace {
namespace {

/// Two environments: a complete group of two with rewards 1 and 0, and one errored episode of two.
std::string small_recording() {
  const test::temporary_folder folder;
  auto writer = recording_writer::create(folder / "a.mrec", "tests").value();
  auto good = test::some_episode("e0");
  good.nodes[1].routed_experts = test::some_experts(5);
  auto bad = test::some_episode("e1");
  bad.finish->traces[0].reward = 0;
  auto errored = test::some_episode("e0", test::some_key("code"));
  errored.finish->status = wire::EpisodeStatus::Errored;
  BOOST_REQUIRE(writer.append(test::sealed({good})));
  BOOST_REQUIRE(writer.append(test::parsed(bad)));
  BOOST_REQUIRE(writer.append(test::sealed({errored})));
  BOOST_REQUIRE(writer.finish());
  return read_file(folder / "a.mrec", 1 << 20).value();
}

recording_summary inspect(std::string_view bytes) {
  const test::temporary_folder folder;
  BOOST_REQUIRE(write_file_atomically(folder / "a.mrec", bytes));
  return inspect_recording(folder / "a.mrec").value();
}

BOOST_AUTO_TEST_CASE(a_summary_counts_by_environment) {
  const auto summary = inspect(small_recording());
  BOOST_TEST(summary.source == "tests");
  BOOST_TEST(summary.counts.episodes == 3U);
  BOOST_REQUIRE_EQUAL(summary.environments.size(), 2U);
  const auto &math = summary.environments.at("math");
  BOOST_TEST(math.groups == 1U);
  BOOST_TEST(math.complete == 1U);
  BOOST_TEST(math.ok == 2U);
  BOOST_TEST(math.tokens == 16U);
  BOOST_TEST(math.trainable == 10U);
  BOOST_TEST(math.expert_tokens == 5U);
  BOOST_TEST(math.uniform == 0U);
  BOOST_TEST(math.rewards.low == 0);
  BOOST_TEST(math.rewards.mean() == 0.5);
  BOOST_TEST(math.rewards.high == 1);
  const auto &code = summary.environments.at("code");
  BOOST_TEST(code.complete == 0U);
  BOOST_TEST(code.errored == 1U);
  BOOST_TEST(code.rewards.count == 0U);
}

BOOST_AUTO_TEST_CASE(a_group_of_equal_rewards_is_uniform) {
  const test::temporary_folder folder;
  auto writer = recording_writer::create(folder / "a.mrec", "tests").value();
  for (const auto *id : {"e0", "e1"})
    BOOST_REQUIRE(writer.append(test::sealed({test::some_episode(id)})));
  BOOST_REQUIRE(writer.finish());
  BOOST_TEST(inspect_recording(folder / "a.mrec").value().environments.at("math").uniform == 1U);
}

BOOST_AUTO_TEST_CASE(a_changed_byte_makes_it_damaged) {
  BOOST_TEST(!inspect(small_recording()).damaged());
  auto bytes = small_recording();
  bytes[200] ^= 1;
  const auto summary = inspect(bytes);
  BOOST_TEST(summary.damaged());
  BOOST_TEST(text_of(summary).find("damage: offset 64") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_torn_tail_is_told_and_is_no_damage) {
  const auto bytes = small_recording();
  const auto summary = inspect(std::string_view(bytes).substr(0, bytes.size() - 20));
  BOOST_TEST(!summary.damaged());
  BOOST_TEST(!summary.finished);
  BOOST_TEST(summary.torn.has_value());
  const auto text = text_of(summary);
  BOOST_TEST(text.find("torn tail") != std::string::npos);
  BOOST_TEST(text.find("not finished") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(values_that_a_reader_will_refuse_are_told_and_are_no_damage) {
  const test::temporary_folder folder;
  auto writer = recording_writer::create(folder / "a.mrec", "tests").value();
  auto bad = test::some_episode();
  bad.nodes[1].logprobs.pop_back();
  BOOST_REQUIRE(writer.append(test::parsed(bad)));
  BOOST_REQUIRE(writer.finish());
  const auto summary = inspect_recording(folder / "a.mrec").value();
  BOOST_TEST(!summary.damaged());
  BOOST_TEST(summary.refused_count == 1U);
  BOOST_TEST(text_of(summary).find("node 1") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(the_json_says_what_the_summary_says) {
  const auto summary = inspect(small_recording());
  const auto out = json_of(summary);
  BOOST_TEST(out["episodes"] == 3);
  BOOST_TEST(out["groups"] == 2);
  BOOST_TEST(out["tokens"] == 24);
  BOOST_TEST(out["records"]["sealed episode"] == 2);
  BOOST_TEST(out["environments"]["math"]["rewards"]["mean"] == 0.5);
  BOOST_TEST(out["damaged"] == false);
  BOOST_TEST(out["torn_tail"].is_null());
}

BOOST_AUTO_TEST_CASE(a_missing_file_is_one_line) {
  const auto summary = inspect_recording("/no/such/file.mrec");
  BOOST_REQUIRE(!summary);
  BOOST_TEST(static_cast<int>(summary.error().code) == static_cast<int>(errc::not_found));
}

} // namespace
} // namespace millrace
