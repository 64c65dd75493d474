// SPDX-License-Identifier: Apache-2.0
#include "schema/synth.hpp"

#include <cmath>
#include <limits>
#include <set>

#include "runtime/digest.hpp"
#include "runtime/file.hpp"
#include "schema/inspect.hpp"
#include "tests/support/temporary_folder.hpp"

#include <boost/test/unit_test.hpp>

namespace millrace {
namespace {

/// The quickstart at full scale, made once for the cases that only look at it.
struct quickstart {
  test::temporary_folder folder;
  recording_counts counts;
  recording_summary summary;

  quickstart()
      : counts(synthesize({}, folder / "a.mrec").value()),
        summary(inspect_recording(folder / "a.mrec").value()) {}
};

const quickstart &made() {
  static const quickstart one;
  return one;
}

std::string bytes_of(const synth_options &options) {
  const test::temporary_folder folder;
  BOOST_REQUIRE(synthesize(options, folder / "a.mrec"));
  return read_file(folder / "a.mrec", std::size_t{1} << 30).value();
}

std::string digest_of(const std::string &bytes) {
  digest_writer digest;
  digest.add(std::as_bytes(std::span(bytes)));
  return digest.finish().hex();
}

BOOST_AUTO_TEST_CASE(the_quickstart_is_a_whole_recording_without_faults) {
  const auto &summary = made().summary;
  BOOST_TEST(summary.finished);
  BOOST_TEST(summary.damage_count == 0U);
  BOOST_TEST(summary.refused_count == 0U);
  BOOST_TEST(summary.counts.conflicts.empty());
  BOOST_TEST(summary.counts.repeats == 0U);
  BOOST_TEST(summary.counts.unfinished == 0U);
  for (const auto &group : summary.counts.groups)
    BOOST_TEST(group.episodes() == group.size);
}

BOOST_AUTO_TEST_CASE(the_quickstart_holds_a_few_hundred_episodes_and_million_tokens) {
  const auto &counts = made().counts;
  BOOST_TEST(counts.episodes >= 300U);
  BOOST_TEST(counts.episodes <= 700U);
  BOOST_TEST(counts.tokens >= 2'000'000U);
  BOOST_TEST(counts.tokens <= 4'000'000U);
}

BOOST_AUTO_TEST_CASE(the_quickstart_shows_every_kind_of_data) {
  std::uint64_t errored = 0;
  std::uint64_t cancelled = 0;
  std::uint64_t uniform = 0;
  std::uint64_t images = 0;
  std::uint64_t expert_tokens = 0;
  const auto &summary = made().summary;
  for (const auto &[name, env] : summary.environments) {
    errored += env.errored;
    cancelled += env.cancelled;
    uniform += env.uniform;
    images += env.images;
    expert_tokens += env.expert_tokens;
    BOOST_TEST(env.uniform < env.groups);
  }
  BOOST_TEST(summary.environments.size() >= 4U);
  BOOST_TEST(errored > 0U);
  BOOST_TEST(cancelled > 0U);
  BOOST_TEST(uniform > 0U);
  BOOST_TEST(images > 0U);
  BOOST_TEST(expert_tokens > 0U);
  for (const auto kind : {record_kind::frame, record_kind::sealed_episode, record_kind::group_size})
    BOOST_TEST(summary.records[static_cast<std::size_t>(kind)] > 0U);
}

BOOST_AUTO_TEST_CASE(every_value_of_the_quickstart_passes_the_door) {
  auto reader = recording_reader::open(made().folder / "a.mrec").value();
  std::size_t forks = 0;
  std::size_t long_traces = 0;
  while (const auto one = reader.next()) {
    if (one->kind != record_kind::sealed_episode)
      continue;
    const auto episode = sealed_episode::parse(one->parts).value();
    BOOST_REQUIRE(check_elements(episode, {.vocab_size = 32'000}).has_value());
    for (std::size_t t = 0; t < episode.trace_count(); ++t) {
      std::set<std::int32_t> parents;
      std::uint64_t tokens = 0;
      for (const auto &node : episode.nodes(t)) {
        forks += parents.insert(node.parent).second ? 0U : 1U;
        tokens += node.token_ids.size();
      }
      long_traces += tokens > 8192 ? 1U : 0U;
    }
  }
  BOOST_TEST(forks > 10U);
  BOOST_TEST(long_traces > 10U);
}

BOOST_AUTO_TEST_CASE(siblings_lie_between_those_of_other_groups) {
  auto reader = recording_reader::open(made().folder / "a.mrec").value();
  std::size_t switches = 0;
  std::string last;
  while (const auto one = reader.next()) {
    if (one->kind != record_kind::sealed_episode)
      continue;
    auto group = key_of(*sealed_episode::parse(one->parts).value().head().key()).text();
    switches += group != last ? 1U : 0U;
    last = std::move(group);
  }
  BOOST_TEST(switches > made().counts.groups.size() * 3);
}

BOOST_AUTO_TEST_CASE(five_algorithms_has_failed_frozen_stale_and_late_episodes_and_rivals) {
  const test::temporary_folder folder;
  const auto counts = synthesize({.preset = "five-algorithms"}, folder / "a.mrec").value();
  BOOST_TEST(counts.conflicts.empty());
  BOOST_TEST(counts.repeats > 5U);
  std::map<std::string, std::uint64_t> seen;
  auto reader = recording_reader::open(folder / "a.mrec").value();
  while (const auto one = reader.next()) {
    if (one->kind != record_kind::sealed_episode)
      continue;
    const auto episode = sealed_episode::parse(one->parts).value();
    const auto &head = episode.head();
    ++seen[std::string(text_of(head.key()->env()))];
    seen["frozen"] += head.frozen() ? 1U : 0U;
    seen["stale"] += !head.frozen() && head.first_version() == 0 ? 1U : 0U;
    seen["errored"] += episode.finish().status() == wire::EpisodeStatus::Errored ? 1U : 0U;
    seen["cancelled"] += episode.finish().status() == wire::EpisodeStatus::Cancelled ? 1U : 0U;
    if (episode.trace_count() == 2 && episode.finish().status() == wire::EpisodeStatus::Ok) {
      const auto *traces = episode.finish().traces();
      ++seen["rivals"];
      BOOST_TEST(traces->Get(0)->reward() + traces->Get(1)->reward() == 1.0);
      BOOST_TEST(traces->Get(1)->agent_trainable());
    }
  }
  for (const auto *what : {"maths", "terminal", "debate", "proofs", "demos", "frozen", "stale",
                           "errored", "cancelled", "rivals"})
    BOOST_TEST(seen[what] > 5U, what << ": " << seen[what]);
}

BOOST_AUTO_TEST_CASE(a_seed_gives_the_same_bytes_on_every_machine) {
  BOOST_TEST(digest_of(bytes_of({.scale = 0.05, .seed = 7})) == "5232c77c4e725450b817266458fda608");
}

BOOST_AUTO_TEST_CASE(another_seed_gives_other_bytes) {
  BOOST_TEST(bytes_of({.scale = 0.05, .seed = 7}) != bytes_of({.scale = 0.05, .seed = 8}));
}

BOOST_AUTO_TEST_CASE(loose_recordings_hold_the_same_episodes_as_frames) {
  const test::temporary_folder folder;
  const auto loose = synthesize({.scale = 0.1, .loose = true}, folder / "a.mrec").value();
  const auto sealed = synthesize({.scale = 0.1}, folder / "b.mrec").value();
  BOOST_TEST(loose.episodes == sealed.episodes);
  BOOST_TEST(loose.tokens == sealed.tokens);
  const auto summary = inspect_recording(folder / "a.mrec").value();
  BOOST_TEST(summary.records[static_cast<std::size_t>(record_kind::sealed_episode)] == 0U);
}

BOOST_AUTO_TEST_CASE(scale_multiplies_the_groups_and_every_environment_keeps_one) {
  const test::temporary_folder folder;
  const auto least = synthesize({.scale = 1e-9}, folder / "a.mrec").value();
  BOOST_TEST(least.groups.size() == made().summary.environments.size());
  const auto half = synthesize({.scale = 0.5}, folder / "b.mrec").value();
  BOOST_TEST(half.groups.size() * 2 == made().counts.groups.size());
}

BOOST_AUTO_TEST_CASE(an_unknown_preset_is_refused_with_the_known_ones) {
  const test::temporary_folder folder;
  const auto made_up = synthesize({.preset = "quickstrat"}, folder / "a.mrec");
  BOOST_REQUIRE(!made_up);
  BOOST_TEST(made_up.error().message.find("'quickstrat'") != std::string::npos);
  BOOST_TEST(made_up.error().message.find("quickstart") != std::string::npos);
  BOOST_TEST(!std::filesystem::exists(folder / "a.mrec"));
}

BOOST_AUTO_TEST_CASE(scales_out_of_range_are_refused) {
  const test::temporary_folder folder;
  for (const double scale : {0.0, -1.0, 1001.0, std::nan(""), HUGE_VAL})
    BOOST_TEST(!synthesize({.scale = scale}, folder / "a.mrec"));
}

} // namespace
} // namespace millrace
