// SPDX-License-Identifier: Apache-2.0
#include "actors/trainer/replay_policy.hpp"

#include <boost/test/unit_test.hpp>

#include "runtime/collective/local.hpp"
#include "runtime/file.hpp"
#include "tests/support/temporary_folder.hpp"

namespace millrace {
namespace {

/// The one rank of a job.
collective &alone() {
  static const auto ranks = make_local_collective(1, std::chrono::seconds(1));
  return *ranks[0];
}

policy_update some_step(std::uint64_t step, std::uint8_t digest = 1) {
  policy_update out{step, {}, {10, 20, 30}, alone()};
  out.digest.bytes.fill(digest);
  return out;
}

void apply(policy &subject, std::uint64_t first, std::uint64_t last) {
  for (auto step = first; step <= last; ++step)
    BOOST_REQUIRE(subject.step(some_step(step)));
}

BOOST_AUTO_TEST_SUITE(replay_policies)

BOOST_AUTO_TEST_CASE(a_policy_that_was_loaded_goes_on_as_if_it_had_never_stopped) {
  replay_policy undisturbed;
  apply(undisturbed, 1, 9);
  replay_policy before;
  apply(before, 1, 4);
  const test::temporary_folder folder;
  BOOST_REQUIRE(before.save(folder.path(), 4));
  replay_policy resumed;
  BOOST_TEST(resumed.load(folder.path()).value() == 4U);
  apply(resumed, 5, 9);
  BOOST_TEST(resumed.steps() == 9U);
  BOOST_TEST((resumed.digest() == undisturbed.digest()));
  BOOST_TEST(resumed.totals().ce == 180);
}

BOOST_AUTO_TEST_CASE(its_digest_tells_apart_what_it_was_given_and_in_which_step) {
  replay_policy one;
  replay_policy other;
  BOOST_REQUIRE(one.step(some_step(1, 1)));
  BOOST_REQUIRE(other.step(some_step(1, 2)));
  BOOST_TEST((one.digest() != other.digest()));
  BOOST_REQUIRE(one.step(some_step(2, 2)));
  BOOST_REQUIRE(other.step(some_step(2, 1)));
  BOOST_TEST((one.digest() != other.digest()));
}

BOOST_AUTO_TEST_CASE(a_step_that_is_not_the_next_is_refused) {
  replay_policy subject;
  apply(subject, 1, 2);
  for (const std::uint64_t step : {1U, 2U, 4U}) {
    const auto done = subject.step(some_step(step));
    BOOST_REQUIRE(!done);
    BOOST_TEST((done.error().code == errc::conflict));
  }
  BOOST_TEST(subject.steps() == 2U);
}

BOOST_AUTO_TEST_CASE(a_file_that_is_not_its_own_is_refused_and_changes_nothing) {
  replay_policy subject;
  apply(subject, 1, 3);
  const test::temporary_folder folder;
  BOOST_REQUIRE(subject.save(folder.path(), 3));
  const auto text = read_file(folder / "replay.json", 4096).value();
  const auto code = [&](std::string changed) {
    BOOST_REQUIRE(write_file_atomically(folder / "replay.json", changed));
    replay_policy fresh;
    const auto loaded = fresh.load(folder.path());
    BOOST_TEST(fresh.steps() == (loaded ? 3U : 0U));
    return loaded ? errc{} : loaded.error().code;
  };
  const auto with = [&](std::string_view from, std::string_view to) {
    auto changed = text;
    changed.replace(changed.find(from), from.size(), to);
    return code(changed);
  };
  BOOST_TEST((code(text) == errc{}));
  BOOST_TEST((code(text.substr(0, text.size() / 2)) == errc::bad_format));
  BOOST_TEST((with("\"version\":2", "\"version\":3") == errc::unsupported));
  BOOST_TEST((with("\"digest\":\"", "\"digest\":\"x") == errc::bad_format));
  std::filesystem::remove(folder / "replay.json");
  BOOST_TEST((replay_policy().load(folder.path()).error().code == errc::not_found));
}

BOOST_AUTO_TEST_CASE(a_reset_policy_is_a_new_one) {
  replay_policy subject;
  apply(subject, 1, 3);
  subject.reset();
  BOOST_TEST(subject.steps() == 0U);
  BOOST_TEST((subject.digest() == digest128{}));
}

BOOST_AUTO_TEST_CASE(its_logprobs_are_those_at_sampling) {
  const std::vector<float> sampled{-1, -2, -3};
  std::vector<float> logprobs(3, 9.0F);
  std::vector<float> entropy(3, 9.0F);
  const micro_batch_tensors none;
  BOOST_REQUIRE(replay_policy().forward({{}, {}, {}, {}, sampled, {}, none}, logprobs, entropy));
  BOOST_TEST(logprobs == sampled, boost::test_tools::per_element());
  BOOST_TEST(entropy == std::vector<float>(3), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
} // namespace millrace
