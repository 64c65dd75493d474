// SPDX-License-Identifier: Apache-2.0
#include <boost/test/unit_test.hpp>

#include <random>

#include "actors/packer/gather.hpp"
#include "actors/trainer/tensors.hpp"
#include "tests/support/naive_packing.hpp"

using namespace millrace;
using namespace millrace::test;

namespace {

/// One stream of a hand-made micro batch: what widen() makes of it. Seven tokens in two sequences.
std::vector<float> widened(const std::vector<std::uint8_t> &encodings,
                           const std::vector<float> &values,
                           const std::vector<std::uint8_t> &flags = {0, 3, 2, 3, 0, 3, 0},
                           const std::vector<std::uint32_t> &lengths = {4, 3}) {
  flatbuffers::FlatBufferBuilder b;
  const auto stream = [&](const std::vector<std::uint8_t> &e, const std::vector<float> &v) {
    const auto e_at = b.CreateVector(e);
    return wire::CreateStream(b, e_at, b.CreateVector(v));
  };
  const std::vector<std::uint8_t> everywhere(lengths.size(), 4);
  const auto ones = stream(everywhere, std::vector<float>(lengths.size(), 1));
  const auto rl = stream(encodings, values);
  const auto ids = b.CreateVector(std::vector<std::int32_t>(flags.size(), 9));
  const auto flags_at = b.CreateVector(flags);
  const auto lengths_at = b.CreateVector(lengths);
  const auto envs = b.CreateVector(std::vector<std::uint32_t>(lengths.size(), 0));
  const auto names = b.CreateVectorOfStrings({"math"});
  const auto origins =
      b.CreateVectorOfStructs(std::vector<wire::Origin>(lengths.size(), wire::Origin()));
  message parts(1);
  parts[0] = finish_body<wire::MicroBatch>(
      b, wire::CreateMicroBatch(b, 1, 0, 0, false, ids, flags_at, lengths_at, envs, names, 1, ones,
                                ones, 0, 0, rl, 0, 0, 0, 0, 0, origins));
  const auto batch = micro_batch::parse(std::move(parts));
  BOOST_TEST_REQUIRE(batch.has_value(), (batch ? "" : batch.error().message));
  micro_batch_tensors out;
  widen(*batch, out);
  const auto got = out.rl_weights.values();
  return {got.begin(), got.end()};
}

} // namespace

BOOST_AUTO_TEST_SUITE(trainer_tensors)

BOOST_AUTO_TEST_CASE(each_encoding_widens_as_it_says) {
  using list = std::vector<float>;
  // Tokens, then Valued.
  BOOST_TEST((widened({0, 1}, {1, 2, 3, 4, 5}) == list{1, 2, 3, 4, 0, 5, 0, 0}));
  // Valued, then OnValued.
  BOOST_TEST((widened({1, 2}, {1, 2, 3, 9}) == list{0, 1, 2, 3, 0, 9, 0, 0}));
  // OnTrainable, then Everywhere; padding is 0.
  BOOST_TEST((widened({3, 4}, {7, 8}) == list{0, 7, 0, 7, 8, 8, 8, 0}));
}

// Runs are found eight flags at a time: every length and place of a run around that width.
BOOST_AUTO_TEST_CASE(compact_values_land_on_their_tokens_whatever_the_runs) {
  for (std::size_t before = 0; before < 19; ++before)
    for (std::size_t run = 1; run < 19; ++run)
      for (std::size_t after = 0; after < 10; ++after) {
        std::vector<std::uint8_t> flags(before, 0);
        flags.insert(flags.end(), run, 3);
        flags.insert(flags.end(), after, 0);
        std::vector<float> values, want(before, 0.0F);
        for (std::size_t i = 0; i < run; ++i) {
          values.push_back(static_cast<float>(i + 1));
          want.push_back(values.back());
        }
        want.resize(want.size() + after + 1, 0.0F);
        const auto n = static_cast<std::uint32_t>(flags.size());
        BOOST_TEST_REQUIRE((widened({1}, values, flags, {n}) == want));
      }
}

BOOST_AUTO_TEST_CASE(components_count_tokens_that_enter_the_loss) {
  micro_batch_tensors tensors;
  const auto set = [](auto &array, const auto &values) {
    const auto out = array.resize(values.size());
    std::copy(values.begin(), values.end(), out.begin());
  };
  set(tensors.loss_mask, std::vector<std::uint8_t>{0, 1, 1, 1});
  BOOST_TEST((count_components(tensors) == component_totals{.rl = 3}));
  set(tensors.rl_weights, std::vector<float>{1, 1, 0, 0.5F});
  set(tensors.ce_weights, std::vector<float>{0.1F, 0, 0, 0});
  set(tensors.ref_kl_weights, std::vector<float>{1, 1, 1, 1});
  component_totals sum{.rl = 2, .ce = 1, .ref_kl = 4};
  BOOST_TEST((count_components(tensors) == sum));
  sum += {.rl = 10, .ce = 20, .ref_kl = 30};
  BOOST_TEST((sum == component_totals{.rl = 12, .ce = 21, .ref_kl = 34}));
}

// Filler changes neither the loss nor the token totals.
BOOST_AUTO_TEST_CASE(a_dummy_counts_for_no_component) {
  const std::uint64_t seed = std::random_device{}();
  for (std::uint64_t i = 0; i < 50; ++i) {
    BOOST_TEST_CONTEXT("seed " << seed + i) {
      made_bin made;
      bin_maker(seed + i).fill(made);
      made.plan.dummy = true;
      micro_batch_tensors tensors;
      widen(*micro_batch::parse(*gather(made.plan)), tensors);
      BOOST_TEST((count_components(tensors) == component_totals{}));
    }
  }
}

BOOST_AUTO_TEST_CASE(memory_is_used_again_for_the_next_micro_batch) {
  made_bin made;
  bin_maker(7).fill(made);
  const auto batch = *micro_batch::parse(*gather(made.plan));
  micro_batch_tensors tensors;
  widen(batch, tensors);
  const auto *ids = tensors.input_ids.values().data();
  const auto *advantages = tensors.advantages.values().data();
  widen(batch, tensors);
  BOOST_TEST(tensors.input_ids.values().data() == ids);
  BOOST_TEST(tensors.advantages.values().data() == advantages);
}

BOOST_AUTO_TEST_SUITE_END()
