// SPDX-License-Identifier: Apache-2.0
#include "actors/planner/plan.hpp"

#include <map>
#include <random>

#include <boost/test/unit_test.hpp>

#include "tests/unit/actors/planner/naive.hpp"

namespace millrace {
namespace {

BOOST_AUTO_TEST_SUITE(plan)

sample_shape text(std::uint64_t tokens) { return {.tokens = tokens}; }

std::vector<sample_shape> texts(std::initializer_list<std::uint64_t> lengths) {
  std::vector<sample_shape> out;
  for (auto n : lengths)
    out.push_back(text(n));
  return out;
}

/// A sample of text and images in turns; four patches a token.
sample_shape with_images(std::mt19937_64 &random) {
  image_shape images;
  images.tensors = {{"image_grid_thw", dtype::int64, {3}},
                    {"pixel_values", random() % 4 == 0 ? dtype::float16 : dtype::float32, {3}}};
  sample_shape out;
  std::uint32_t at = static_cast<std::uint32_t>(random() % 3);
  for (auto left = 1 + random() % 3; left > 0; --left) {
    const auto tokens = static_cast<std::uint32_t>(1 + random() % 4);
    images.runs.emplace_back(at, tokens);
    images.grid_thw.push_back({1, 4, tokens});
    images.patches += 4 * tokens;
    at += tokens + static_cast<std::uint32_t>(1 + random() % 3);
  }
  if (random() % 8 == 0)
    images.patches /= 5; // too few: rejected when it is cut
  out.tokens = at;
  out.images = images;
  return out;
}

sample_shape random_sample(std::mt19937_64 &random) {
  auto out = random() % 4 == 0 ? with_images(random) : text(random() % 20);
  if (random() % 3 == 0)
    out.experts = array_signature{"", random() % 2 == 0 ? dtype::uint8 : dtype::int16, {2, 2}};
  return out;
}

/// Micro batches of the plan, tokens by sample (dummies aside), and tokens of dummies.
struct totals {
  std::size_t micro_batches = 0;
  std::size_t dummies = 0;
  std::map<std::size_t, std::uint64_t> kept;
};

totals count(const step_plan &plan) {
  totals out;
  for (const auto &rank : plan.ranks)
    for (const auto &batch : rank) {
      ++out.micro_batches;
      out.dummies += batch.dummy;
      for (const auto &p : batch.pieces)
        if (!batch.dummy)
          out.kept[p.sample] += p.tokens;
    }
  return out;
}

BOOST_AUTO_TEST_CASE(a_plan_equals_the_rules_word_by_word) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    std::mt19937_64 random(seed);
    const auto multiple = static_cast<std::uint32_t>(1 + random() % 4);
    const plan_config config{
        .seq_len = static_cast<std::uint32_t>(multiple * (1 + random() % 6)),
        .pad_to_multiple_of = multiple,
        .ranks = static_cast<std::uint32_t>(1 + random() % 5),
        .cost = {.linear = static_cast<std::int64_t>(1 + random() % 3),
                 .quadratic = static_cast<std::int64_t>(random() % 3) << (random() % 60)},
        .cost_model = {}};
    std::vector<sample_shape> samples(random() % 24);
    for (auto &s : samples)
      s = random_sample(random);
    const auto got = plan_step(samples, config);
    const auto want = naive::plan_step(samples, config);
    BOOST_TEST_CONTEXT("seed " << seed) {
      BOOST_TEST_REQUIRE(got.has_value());
      BOOST_TEST((got->ranks == want.ranks));
      BOOST_TEST(got->dropped == want.dropped, boost::test_tools::per_element());
      BOOST_TEST_REQUIRE(got->rejected.size() == want.rejected.size());
      for (std::size_t i = 0; i < want.rejected.size(); ++i)
        BOOST_TEST(got->rejected[i].sample == want.rejected[i].sample);
      BOOST_TEST(check_plan(*got, config).has_value());
    }
  }
}

BOOST_AUTO_TEST_CASE(first_fit_equals_a_scan_over_hundreds_of_bins) {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    std::mt19937_64 random(seed);
    std::vector<sample_shape> samples(500);
    for (auto &s : samples)
      s = random_sample(random);
    const plan_config config{.seq_len = 24, .cost_model = {}};
    const auto got = plan_step(samples, config);
    BOOST_TEST_CONTEXT("seed " << seed) {
      BOOST_TEST_REQUIRE(got.has_value());
      BOOST_TEST(got->ranks[0].size() > 150U);
      BOOST_TEST((got->ranks == naive::plan_step(samples, config).ranks));
    }
  }
}

BOOST_AUTO_TEST_CASE(every_sample_is_planned_once_or_counted) {
  std::mt19937_64 random(1);
  std::vector<sample_shape> samples(200);
  for (auto &s : samples)
    s = random_sample(random);
  const auto got = plan_step(samples, {.seq_len = 3, .ranks = 3, .cost_model = {}});
  BOOST_TEST_REQUIRE(got.has_value());
  BOOST_TEST(count(*got).kept.size() + got->dropped.size() + got->rejected.size() ==
             samples.size());
  BOOST_TEST(got->dropped.size() > 0U);
  BOOST_TEST(got->rejected.size() > 0U);
}

// A heavy and a light rank: ranks must not end up with different counts, and filler adds nothing.
BOOST_AUTO_TEST_CASE(ranks_get_as_many_micro_batches_however_uneven_the_samples) {
  const auto samples = texts({8000, 8000, 8000, 8000, 200});
  for (std::uint32_t ranks : {1U, 2U, 3U, 4U, 8U}) {
    const plan_config config{
        .seq_len = 8192, .pad_to_multiple_of = 128, .ranks = ranks, .cost_model = {}};
    const auto got = plan_step(samples, config);
    BOOST_TEST_CONTEXT(ranks << " ranks") {
      BOOST_TEST_REQUIRE(got.has_value());
      BOOST_TEST(check_plan(*got, config).has_value());
      for (const auto &rank : got->ranks)
        BOOST_TEST(rank.size() == got->ranks[0].size());
      const auto sum = count(*got);
      BOOST_TEST((sum.kept == std::map<std::size_t, std::uint64_t>{
                                  {0, 8000}, {1, 8000}, {2, 8000}, {3, 8000}, {4, 200}}));
    }
  }
}

BOOST_AUTO_TEST_CASE(filler_copies_the_first_micro_batch_and_is_marked) {
  const auto got = plan_step(texts({8, 5}),
                             {.seq_len = 8, .pad_to_multiple_of = 4, .ranks = 3, .cost_model = {}});
  BOOST_TEST_REQUIRE(got.has_value());
  const auto sum = count(*got);
  BOOST_TEST(sum.micro_batches == 3U);
  BOOST_TEST(sum.dummies == 1U);
  const micro_batch_plan filler{.pieces = {{0, 8, 0}}, .padding = 0, .dummy = true};
  BOOST_TEST((std::count(got->ranks.begin(), got->ranks.end(),
                         std::vector<micro_batch_plan>{filler}) == 1));
}

// A filtered step leaves a count that does not divide: handled the same way each time.
BOOST_AUTO_TEST_CASE(any_number_of_samples_divides_over_the_ranks) {
  for (std::uint32_t ranks : {2U, 3U})
    for (std::size_t samples : {8U, 8U, 5U, 1U, 0U}) {
      const plan_config config{.seq_len = 100, .ranks = ranks, .cost_model = {}};
      const auto got = plan_step(std::vector(samples, text(60)), config);
      BOOST_TEST_CONTEXT(samples << " samples, " << ranks << " ranks") {
        BOOST_TEST_REQUIRE(got.has_value());
        BOOST_TEST(check_plan(*got, config).has_value());
        BOOST_TEST(got->ranks.size() == ranks);
        for (const auto &rank : got->ranks)
          BOOST_TEST(rank.size() == (samples + ranks - 1) / ranks);
        const auto sum = count(*got);
        BOOST_TEST(sum.kept.size() == samples);
        BOOST_TEST(sum.dummies == sum.micro_batches - samples);
      }
    }
}

// Capacity and padding must use one alignment: a bin that is full before padding may not pass it.
BOOST_AUTO_TEST_CASE(a_padded_micro_batch_never_passes_seq_len) {
  const plan_config config{.seq_len = 4096, .pad_to_multiple_of = 128, .cost_model = {}};
  const auto got = plan_step(texts({4095, 4096, 3969, 1}), config);
  BOOST_TEST_REQUIRE(got.has_value());
  BOOST_TEST(check_plan(*got, config).has_value());
  const std::vector<micro_batch_plan> want{{.pieces = {{1, 4096, 0}}, .padding = 0},
                                           {.pieces = {{0, 4095, 0}, {3, 1, 0}}, .padding = 0},
                                           {.pieces = {{2, 3969, 0}}, .padding = 127}};
  BOOST_TEST((got->ranks[0] == want));
}

BOOST_AUTO_TEST_CASE(a_seq_len_that_padding_would_pass_is_refused) {
  const plan_config config{.seq_len = 4100, .pad_to_multiple_of = 128, .cost_model = {}};
  const auto got = plan_step(texts({4095, 4096, 3969, 1}), config);
  BOOST_TEST_REQUIRE(!got.has_value());
  BOOST_TEST((got.error().code == errc::bad_config));
  BOOST_TEST(got.error().message.find("4096 or 4224") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(costs_that_do_not_fit_are_an_error) {
  const auto most = std::numeric_limits<std::int64_t>::max();
  const plan_config config{
      .seq_len = 1U << 26, .cost = {.linear = most, .quadratic = most}, .cost_model = {}};
  BOOST_TEST(plan_step(std::vector(100, text(1U << 26)), config).has_value());
  const auto too_many = plan_step(std::vector(4096, text(1U << 26)), config);
  BOOST_TEST_REQUIRE(!too_many.has_value());
  BOOST_TEST((too_many.error().code == errc::too_large));
}

BOOST_AUTO_TEST_CASE(validate_gives_every_error_with_its_key) {
  const plan_config config{.seq_len = 0,
                           .pad_to_multiple_of = 0,
                           .ranks = 0,
                           .cost = {.linear = -1, .quadratic = -2},
                           .cost_model = {}};
  const auto errors = config.validate();
  std::string all;
  for (const auto &e : errors)
    all += e.message + "\n";
  BOOST_TEST(errors.size() == 5U);
  for (const auto *key :
       {"seq_len", "pad_to_multiple_of", "trainer.ranks", "cost.linear", "cost.quadratic"})
    BOOST_TEST(all.find(key) != std::string::npos, all);
  BOOST_TEST((plan_config{.cost = {0, 0}, .cost_model = {}}.validate().size() == 1U));
  BOOST_TEST(plan_config{}.validate().empty());
}

/// A good plan of two ranks with images and text on each, to be spoilt.
struct checked {
  plan_config config{.seq_len = 8, .ranks = 2, .cost_model = {}};
  step_plan plan;
  checked() {
    for (std::size_t r : {0U, 1U})
      plan.ranks.push_back(
          {{.pieces = {{2 * r, 8, 1}}, .images = true}, {.pieces = {{2 * r + 1, 4, 0}}}});
  }
  bool holds() const { return check_plan(plan, config).has_value(); }
};

BOOST_FIXTURE_TEST_CASE(a_good_plan_passes_the_check, checked) { BOOST_TEST(holds()); }

BOOST_FIXTURE_TEST_CASE(the_check_finds_a_rank_with_fewer_micro_batches, checked) {
  plan.ranks[1].pop_back();
  BOOST_TEST(!holds());
}

BOOST_FIXTURE_TEST_CASE(the_check_finds_a_missing_rank, checked) {
  plan.ranks.pop_back();
  BOOST_TEST(!holds());
}

BOOST_FIXTURE_TEST_CASE(the_check_finds_a_micro_batch_over_the_cap, checked) {
  plan.ranks[1][1].padding = 5;
  BOOST_TEST(!holds());
}

BOOST_FIXTURE_TEST_CASE(the_check_finds_padding_to_another_multiple, checked) {
  config.pad_to_multiple_of = 8;
  BOOST_TEST(!holds());
}

BOOST_FIXTURE_TEST_CASE(the_check_finds_two_modalities_at_one_index, checked) {
  std::swap(plan.ranks[1][0], plan.ranks[1][1]);
  BOOST_TEST(!holds());
}

BOOST_FIXTURE_TEST_CASE(the_check_finds_a_wrong_mark, checked) {
  plan.ranks[0][1].images = plan.ranks[1][1].images = true;
  BOOST_TEST(!holds());
}

BOOST_FIXTURE_TEST_CASE(the_check_finds_an_empty_micro_batch, checked) {
  plan.ranks[0][1].pieces.clear();
  BOOST_TEST(!holds());
}

BOOST_FIXTURE_TEST_CASE(the_check_finds_a_sample_twice, checked) {
  plan.ranks[1][1].pieces[0].sample = 1;
  BOOST_TEST(!holds());
  plan.ranks[1][1].dummy = true;
  BOOST_TEST(holds());
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
} // namespace millrace
