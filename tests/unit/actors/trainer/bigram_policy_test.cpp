// SPDX-License-Identifier: Apache-2.0
#include "actors/trainer/bigram_policy.hpp"

#include <chrono>
#include <cmath>
#include <fstream>
#include <random>

#include <boost/test/unit_test.hpp>

#include "actors/trainer/safetensors.hpp"
#include "runtime/collective/local.hpp"
#include "tests/support/ranks.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/unit/actors/trainer/some_batch.hpp"

namespace millrace::test {
namespace {

constexpr std::uint32_t vocab = 5;

struct bigram_fixture {
  std::vector<std::unique_ptr<collective>> ranks =
      make_local_collective(1, std::chrono::seconds(10));
  std::shared_ptr<bigram_board> board = std::make_shared<bigram_board>();
  bigram_policy policy{{vocab, 0.5}, board};
  micro_batch_tensors tensors = some_tensors({{0, 1, 2, 4}, {3, 3, 0}}, 2);

  std::vector<float> logprobs(bigram_policy &of) {
    std::vector<float> out(tensors.tokens()), entropy(tensors.tokens());
    BOOST_REQUIRE(of.forward(batch_of(tensors), out, entropy));
    return out;
  }
  void train(bigram_policy &what, std::uint64_t step, float gradient = -0.25F) {
    const std::vector<float> gradients(tensors.tokens(), gradient);
    BOOST_REQUIRE(what.backward(batch_of(tensors), gradients));
    BOOST_REQUIRE(what.step({step, {}, {}, *ranks[0]}));
  }
};

BOOST_FIXTURE_TEST_SUITE(bigram_policies, bigram_fixture)

BOOST_AUTO_TEST_CASE(a_new_policy_finds_all_tokens_as_likely_and_first_ones_have_no_probability) {
  std::vector<float> logprobs(tensors.tokens(), 9), entropy(tensors.tokens(), 9);
  BOOST_REQUIRE(policy.forward(batch_of(tensors), logprobs, entropy));
  const auto uniform = std::log(1.0F / vocab);
  for (std::size_t i = 0; i < tensors.tokens(); ++i) {
    const bool first = i == 0 || i == 4;
    BOOST_TEST(logprobs[i] == (first ? 0 : uniform), boost::test_tools::tolerance(1e-6F));
    BOOST_TEST(entropy[i] == (first ? 0 : -uniform), boost::test_tools::tolerance(1e-6F));
  }
}

// The slope of sum(gradient * logprob) along each parameter, by differences.
BOOST_AUTO_TEST_CASE(the_gradient_is_that_of_the_logprobs_at_their_temperature) {
  train(policy, 1); // somewhere else than at 0
  std::mt19937 random(7);
  std::vector<float> gradient(tensors.tokens());
  for (auto &one : gradient)
    one = std::uniform_real_distribution<float>(-1, 1)(random);
  const auto value = [&](const bigram_logits &logits) {
    double sum = 0;
    std::size_t begin = 0;
    for (const auto length : tensors.sequence_lengths.values()) {
      for (std::size_t i = begin + 1; i < begin + static_cast<std::size_t>(length); ++i) {
        const auto *row = logits.data() + tensors.input_ids.values()[i - 1] * vocab;
        double all = 0;
        for (std::uint32_t k = 0; k < vocab; ++k)
          all += std::exp(row[k] / 2);
        sum += static_cast<double>(gradient[i]) *
               (row[tensors.input_ids.values()[i]] / 2 - std::log(all));
      }
      begin += static_cast<std::size_t>(length);
    }
    return sum;
  };
  const auto before = policy.logits();
  BOOST_REQUIRE(policy.backward(batch_of(tensors), gradient));
  BOOST_REQUIRE(policy.step({2, {}, {}, *ranks[0]}));
  constexpr double nudge = 1e-5;
  for (std::size_t k = 0; k < before.size(); ++k) {
    auto up = before, down = before;
    up[k] += nudge;
    down[k] -= nudge;
    const auto slope = (value(up) - value(down)) / (2 * nudge);
    BOOST_TEST(before[k] - policy.logits()[k] == 0.5 * slope, boost::test_tools::tolerance(1e-6));
  }
}

BOOST_AUTO_TEST_CASE(going_against_the_gradient_makes_what_was_seen_likelier) {
  const auto before = logprobs(policy);
  train(policy, 1);
  const auto after = logprobs(policy);
  for (const std::size_t i : {1U, 2U, 3U, 5U, 6U})
    BOOST_TEST(after[i] > before[i]);
}

BOOST_AUTO_TEST_CASE(ranks_that_share_the_tokens_end_with_the_parameters_of_one_that_has_all) {
  train(policy, 1);
  auto two = make_local_collective(2, std::chrono::seconds(10));
  const std::array parts{some_tensors({{0, 1, 2, 4}}, 2), some_tensors({{3, 3, 0}}, 2)};
  const auto shared = on_all_ranks(two, [&](collective &rank) {
    bigram_policy mine({vocab, 0.5}, nullptr);
    const auto &part = parts[static_cast<std::size_t>(rank.rank())];
    const std::vector<float> gradients(part.tokens(), -0.25F);
    const bool done = mine.backward(batch_of(part), gradients) && mine.step({1, {}, {}, rank});
    return done ? mine.logits() : bigram_logits();
  });
  BOOST_TEST(shared[0] == shared[1], boost::test_tools::per_element());
  for (std::size_t k = 0; k < shared[0].size(); ++k)
    BOOST_TEST(shared[0][k] == policy.logits()[k], boost::test_tools::tolerance(1e-12));
}

BOOST_AUTO_TEST_CASE(what_was_saved_goes_on_as_if_it_had_never_stopped) {
  const temporary_folder folder;
  train(policy, 1);
  BOOST_REQUIRE(policy.save(folder.path(), 1));
  bigram_policy resumed({vocab, 0.5}, nullptr);
  BOOST_TEST(resumed.load(folder.path()).value() == 1U);
  train(policy, 2);
  train(resumed, 2);
  BOOST_TEST(resumed.logits() == policy.logits(), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_gradient_that_was_under_way_is_gone_after_load_and_reset) {
  const temporary_folder folder;
  BOOST_REQUIRE(policy.save(folder.path(), 0));
  const std::vector<float> gradients(tensors.tokens(), 1);
  BOOST_REQUIRE(policy.backward(batch_of(tensors), gradients));
  BOOST_REQUIRE(policy.load(folder.path()));
  BOOST_REQUIRE(policy.step({1, {}, {}, *ranks[0]}));
  BOOST_TEST(policy.logits() == bigram_logits(vocab * vocab), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(the_board_shows_each_version_as_it_comes) {
  BOOST_TEST(board->newest().version == 0U);
  const auto first = board->newest().logits;
  train(policy, 1);
  BOOST_TEST(board->newest().version == 1U);
  BOOST_TEST(*board->newest().logits == policy.logits(), boost::test_tools::per_element());
  BOOST_TEST(*first == bigram_logits(vocab * vocab), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_token_outside_the_vocabulary_is_named) {
  tensors = some_tensors({{0, 1}, {2, vocab}});
  std::vector<float> out(tensors.tokens()), entropy(tensors.tokens());
  const auto done = policy.forward(batch_of(tensors), out, entropy);
  BOOST_REQUIRE(!done);
  BOOST_TEST((done.error().code == errc::bad_value));
  BOOST_TEST(done.error().message.find("token 3 of the micro batch has id 5") == 0U);
}

BOOST_AUTO_TEST_CASE(parameters_of_another_shape_or_none_are_refused_and_nothing_changes) {
  const temporary_folder folder;
  train(policy, 1);
  const auto before = policy.logits();
  BOOST_TEST((policy.load(folder.path()).error().code == errc::not_found));
  BOOST_REQUIRE(bigram_policy({vocab + 1, 1}, nullptr).save(folder.path(), 3));
  BOOST_TEST((policy.load(folder.path()).error().code == errc::bad_value));
  const std::array items{
      tensor_item{"logits", true, dtype::uint8, {2}, std::as_bytes(std::span("x"))}};
  BOOST_REQUIRE(write_safetensors(folder / "parameters.safetensors", {}, items));
  BOOST_TEST((policy.load(folder.path()).error().code == errc::bad_format));
  std::ofstream(folder / "parameters.safetensors") << "no tensors";
  BOOST_TEST((policy.load(folder.path()).error().code == errc::bad_format));
  BOOST_TEST(policy.logits() == before, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
} // namespace millrace::test
