// SPDX-License-Identifier: Apache-2.0
#include "actors/trainer/device_batch.hpp"

#include <cstring>
#include <random>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "actors/packer/gather.hpp"
#include "actors/trainer/tensors.hpp"
#include "tests/support/devices.hpp"
#include "tests/support/random_bins.hpp"

using namespace millrace;
using namespace millrace::test;

namespace {

micro_batch random_batch(std::uint64_t seed) {
  made_bin made;
  bin_maker(seed).fill(made);
  return must(micro_batch::parse(must(gather(made.plan))));
}

template <class T>
void check_column(device &on, std::string_view name, const T *got, const host_array<T> &want) {
  BOOST_TEST_CONTEXT(name) {
    BOOST_TEST_REQUIRE((got != nullptr) == want.has_value());
    if (got == nullptr)
      return;
    std::vector<T> bytes(want.size());
    check_ok(on.download(reinterpret_cast<const std::byte *>(got),
                         std::as_writable_bytes(std::span(bytes))));
    // Bit for bit: -0.0 is not 0.0.
    BOOST_TEST(std::memcmp(bytes.data(), want.values().data(), want.size() * sizeof(T)) == 0);
  }
}

void check_equal(device &on, const device_batch &got, const micro_batch_tensors &want) {
  BOOST_TEST(got.step == want.step);
  BOOST_TEST(got.rank == want.rank);
  BOOST_TEST(got.index == want.index);
  BOOST_TEST_REQUIRE(got.tokens == want.tokens());
  BOOST_TEST(got.padding == static_cast<std::size_t>(want.padding));
  BOOST_TEST_REQUIRE(got.sequences == want.sequence_lengths.size());
  check_column(on, "input_ids", got.input_ids, want.input_ids);
  check_column(on, "loss_mask", got.loss_mask, want.loss_mask);
  check_column(on, "position_ids", got.position_ids, want.position_ids);
  check_column(on, "sequence_lengths", got.sequence_lengths, want.sequence_lengths);
  check_column(on, "advantages", got.advantages, want.advantages);
  check_column(on, "inference_logprobs", got.inference_logprobs, want.inference_logprobs);
  check_column(on, "temperatures", got.temperatures, want.temperatures);
  check_column(on, "ref_logprobs", got.ref_logprobs, want.ref_logprobs);
  check_column(on, "rl_weights", got.rl_weights, want.rl_weights);
  check_column(on, "ce_weights", got.ce_weights, want.ce_weights);
  check_column(on, "ref_kl_weights", got.ref_kl_weights, want.ref_kl_weights);
  check_column(on, "mm_token_type_ids", got.mm_token_type_ids, want.mm_token_type_ids);
}

micro_batch_tensors widened(const micro_batch &batch) {
  micro_batch_tensors tensors;
  widen(batch, tensors);
  return tensors;
}

/// Which encodings and columns random batches have had, so that a test can say that it saw all.
struct coverage {
  std::size_t encodings[5] = {};
  std::size_t types = 0, no_types = 0, no_advantages = 0, padded = 0, unpadded = 0;

  void take(const micro_batch &batch) {
    for (const auto &stream :
         {std::optional(batch.inference_logprobs()), std::optional(batch.temperatures()),
          batch.advantages(), batch.ref_logprobs(), batch.rl_weights(), batch.ce_weights(),
          batch.ref_kl_weights()})
      if (stream)
        for (const auto encoding : stream->encodings)
          ++encodings[encoding];
    ++(batch.mm_token_type_ids() ? types : no_types);
    ++(batch.padding() > 0 ? padded : unpadded);
    no_advantages += batch.advantages() ? 0U : 1U;
  }
};

} // namespace

BOOST_AUTO_TEST_SUITE(widening_on_a_device)

// What the kernels compute is what the host's own loops compute.
BOOST_TEST_DECORATOR(*boost::unit_test::precondition(device_is_here))
BOOST_AUTO_TEST_CASE_TEMPLATE(random_micro_batches_are_widened_bit_for_bit, Device,
                              devices_under_test) {
  const auto on = Device::make();
  const std::uint64_t first = std::random_device{}();
  coverage seen;
  for (std::uint64_t seed = first; seed < first + 300; ++seed) {
    BOOST_TEST_CONTEXT("seed " << seed) {
      const auto batch = random_batch(seed);
      seen.take(batch);
      check_equal(*on, must(widen_on(*on, must(upload_batch(*on, batch)))), widened(batch));
    }
  }
  for (const auto count : seen.encodings)
    BOOST_TEST(count > 0U);
  for (const auto count :
       {seen.types, seen.no_types, seen.no_advantages, seen.padded, seen.unpadded})
    BOOST_TEST(count > 0U);
}

// As a trainer does: the next one is sent before this one is worked on. Nothing waits in between,
// so memory that was used again before the kernels had read it would show.
BOOST_TEST_DECORATOR(*boost::unit_test::precondition(device_is_here))
BOOST_AUTO_TEST_CASE_TEMPLATE(the_next_upload_does_not_disturb_the_batch_at_work, Device,
                              devices_under_test) {
  const auto on = Device::make();
  const std::uint64_t first = std::random_device{}();
  constexpr std::uint64_t count = 24;
  BOOST_TEST_CONTEXT("seed " << first) {
    std::vector<device_batch> made;
    auto next = must(upload_batch(*on, random_batch(first)));
    for (std::uint64_t i = 0; i < count; ++i) {
      auto now = std::move(next);
      next = must(upload_batch(*on, random_batch(first + i + 1)));
      made.push_back(must(widen_on(*on, std::move(now))));
    }
    for (std::uint64_t i = 0; i < count; ++i)
      check_equal(*on, made[i], widened(random_batch(first + i)));
  }
}

BOOST_TEST_DECORATOR(*boost::unit_test::precondition(device_is_here))
BOOST_AUTO_TEST_CASE_TEMPLATE(a_device_holds_no_more_for_the_hundredth_batch, Device,
                              devices_under_test) {
  const auto on = Device::make();
  const auto batch = random_batch(7);
  std::uint64_t held = 0;
  for (int i = 0; i < 100; ++i) {
    (void)must(widen_on(*on, must(upload_batch(*on, batch))));
    if (i == 0)
      held = on->held().memory;
  }
  BOOST_TEST(held > 0U);
  BOOST_TEST(on->held().memory == held);
}

BOOST_AUTO_TEST_SUITE_END()
