// SPDX-License-Identifier: Apache-2.0
#include "actors/trainer/step_metrics.hpp"

#include <chrono>
#include <limits>

#include <boost/test/unit_test.hpp>

#include "actors/trainer/metrics_file.hpp"
#include "runtime/collective/local.hpp"
#include "runtime/file.hpp"
#include "runtime/json.hpp"
#include "tests/support/ranks.hpp"
#include "tests/support/temporary_folder.hpp"

namespace millrace::test {
namespace {

/// What a rank says; every number differs.
step_metrics some_metrics(std::uint64_t n, const std::string &env) {
  step_metrics out;
  auto &one = out.envs[env];
  one.sequences = n;
  one.tokens = 10 * n;
  one.reward = 0.5 * static_cast<double>(n);
  one.losses.rl = {.tokens = 4 * n,
                   .hit = n,
                   .hit_high = n,
                   .hit_kl = 0.5,
                   .kept_kl = 0.25,
                   .loss = 2.0 * static_cast<double>(n)};
  one.stats.tokens = 4 * n;
  one.stats.entropy = static_cast<double>(n);
  one.stats.mismatch_kl = 0.125;
  one.stats.ratio = 4.0 * static_cast<double>(n);
  one.stats.ratio_min = 1.0 / static_cast<double>(n + 1);
  one.stats.ratio_max = static_cast<double>(n);
  out.micro_batches = n;
  out.tokens = 16 * n;
  out.padding = 6 * n;
  out.wire_bytes = 100 * n;
  out.held_bytes = 1000 * n;
  out.seconds = {.upload = 1, .widen = static_cast<double>(n), .update = 3};
  out.non_finites = {{"loss", static_cast<std::uint32_t>(n), 2, 3, 4}};
  return out;
}

BOOST_AUTO_TEST_SUITE(metrics_of_a_step)

BOOST_AUTO_TEST_CASE(ranks_that_saw_different_environments_all_get_the_same_sum) {
  auto ranks = make_local_collective(3, std::chrono::seconds(10));
  const auto all = on_all_ranks(ranks, [](collective &rank) {
    const auto n = static_cast<std::uint64_t>(rank.rank());
    return reduce(rank, 5, some_metrics(n + 1, n == 2 ? "a rather long name of one" : "math"));
  });
  for (const auto &one : all) {
    BOOST_TEST_REQUIRE(one.has_value());
    BOOST_TEST(one->envs.size() == 2U);
    const auto &math = one->envs.at("math");
    BOOST_TEST(math.sequences == 3U);
    BOOST_TEST(math.reward == 1.5);
    BOOST_TEST(math.losses.rl->tokens == 12U);
    BOOST_TEST(math.losses.rl->loss == 6.0);
    BOOST_TEST(!math.losses.ce);
    BOOST_TEST(math.stats.ratio_max == 2.0);
    BOOST_TEST(math.stats.ratio_min == 1.0 / 3);
    BOOST_TEST(one->total().stats.tokens == 24U);
    BOOST_TEST(one->micro_batches == 6U);
    BOOST_TEST(one->held_bytes == 3000U); // the most of one
    BOOST_TEST(one->seconds.widen == 3.0);
    BOOST_TEST(one->seconds.upload == 1.0);
    BOOST_REQUIRE_EQUAL(one->non_finites.size(), 3);
    BOOST_TEST(one->non_finites[1].rank == 2U);
    BOOST_TEST(one->non_finites[1].name == "loss");
  }
}

BOOST_AUTO_TEST_CASE(infinities_cross_the_ranks_as_they_are) {
  auto ranks = make_local_collective(2, std::chrono::seconds(10));
  const auto all = on_all_ranks(ranks, [](collective &rank) {
    auto mine = some_metrics(1, "math");
    if (rank.rank() == 1)
      mine.envs["math"].stats.ratio = std::numeric_limits<double>::infinity();
    return reduce(rank, 5, mine);
  });
  BOOST_TEST(all[0]->envs.at("math").stats.ratio == std::numeric_limits<double>::infinity());
}

BOOST_AUTO_TEST_CASE(a_line_is_json_with_means_shares_and_staleness) {
  const std::array staleness{staleness_count{0, 3}, staleness_count{2, 1}};
  const auto line = metrics_line({.run = "r",
                                  .generation = 2,
                                  .step = 9,
                                  .ranks = 4,
                                  .totals = {.rl = 8},
                                  .staleness = staleness},
                                 some_metrics(2, "math"));
  BOOST_TEST(line.back() == '\n');
  json::document document;
  const auto root = document.parse(line).value();
  BOOST_TEST(root.get<std::uint64_t>("step").value() == 9U);
  BOOST_TEST(root.get<double>("padding_share").value() == 0.375);
  const auto env = root.get<json::value>("env").value().get<json::value>("math").value();
  for (const auto &part : {root.get<json::value>("all").value(), env}) {
    BOOST_TEST(part.get<double>("loss").value() == 0.5); // 4 / 8
    BOOST_TEST(part.get<double>("loss_rl").value() == 0.5);
    BOOST_TEST(part.get<double>("entropy").value() == 0.25);
    BOOST_TEST(part.get<double>("reward").value() == 0.5);
    BOOST_TEST(part.get<double>("importance_ratio").value() == 1.0);
    BOOST_TEST(part.get<double>("is_masked").value() == 0.25);
  }
  const auto ages = root.get<json::value>("staleness").value();
  BOOST_TEST(ages.get<double>("mean").value() == 0.5);
  BOOST_TEST(ages.get<std::uint64_t>("max").value() == 2U);
}

BOOST_AUTO_TEST_CASE(what_is_not_finite_is_null_and_stands_by_name) {
  auto metrics = some_metrics(2, "math");
  metrics.envs["math"].losses.rl->loss = std::numeric_limits<double>::quiet_NaN();
  metrics.envs["math"].stats.ratio = std::numeric_limits<double>::infinity();
  const auto line = metrics_line({.totals = {.rl = 8}}, metrics);
  BOOST_TEST(line.find("nan") == std::string::npos);
  BOOST_TEST(line.find("inf") == std::string::npos);
  json::document document;
  const auto root = document.parse(line).value();
  const auto all = root.get<json::value>("all").value();
  for (const auto *name : {"loss", "loss_rl", "importance_ratio"})
    BOOST_TEST(!all.find<double>(name, json::nulls::as_absent).value().has_value(), name);
  const auto list = root.get<json::value>("non_finite").value().items().value();
  BOOST_REQUIRE_EQUAL(list.size(), 1);
  BOOST_TEST(list[0].get<std::string>("name").value() == "loss");
  BOOST_TEST(list[0].get<std::uint64_t>("micro_batch").value() == 2U);
}

BOOST_AUTO_TEST_CASE(a_step_without_a_policy_has_no_loss_and_no_entropy) {
  step_metrics metrics;
  metrics.envs["math"].sequences = 3;
  json::document document;
  const auto all =
      document.parse(metrics_line({}, metrics)).value().get<json::value>("all").value();
  for (const auto *name : {"loss", "entropy", "importance_ratio_max"})
    BOOST_TEST(!all.find<double>(name, json::nulls::as_absent).value().has_value(), name);
}

BOOST_AUTO_TEST_CASE(lines_are_added_one_after_the_other) {
  const temporary_folder folder;
  BOOST_REQUIRE(append_line(folder / "m.jsonl", "one\n"));
  BOOST_REQUIRE(append_line(folder / "m.jsonl", "two\n"));
  BOOST_TEST(read_file(folder / "m.jsonl", 100).value() == "one\ntwo\n");
  BOOST_REQUIRE(write_file_atomically(folder / "m.jsonl", "one\nto")); // died while it wrote
  BOOST_REQUIRE(append_line(folder / "m.jsonl", "three\n"));
  BOOST_TEST(read_file(folder / "m.jsonl", 100).value() == "one\nto\nthree\n");
  BOOST_TEST(!append_line(folder / "no/m.jsonl", "one\n"));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
} // namespace millrace::test
