// SPDX-License-Identifier: Apache-2.0
#include <boost/test/unit_test.hpp>

#include <sys/mman.h>

#include <cstring>
#include <random>

#include "actors/packer/gather.hpp"
#include "actors/packer/micro_batch.hpp"
#include "actors/trainer/tensors.hpp"
#include "schema/limits.hpp"
#include "tests/support/naive_packing.hpp"
#include "tests/support/random_bins.hpp"

using namespace millrace;
using namespace millrace::test;

namespace {

micro_batch_tensors tensors_of(const bin &plan) {
  auto parts = gather(plan);
  BOOST_TEST_REQUIRE(parts.has_value(), (parts ? "" : parts.error().message));
  auto batch = micro_batch::parse(*std::move(parts));
  BOOST_TEST_REQUIRE(batch.has_value(), (batch ? "" : batch.error().message));
  micro_batch_tensors out;
  widen(*batch, out);
  return out;
}

std::uint64_t random_seed() { return std::random_device{}(); }

/// A prompt of `prompt` tokens and an answer of `answer` tokens, in one trace with one branch.
struct chat {
  made_trace trace;
  sample_source sample;

  chat(std::size_t prompt, std::size_t answer, std::uint32_t tokens) {
    auto &user = trace.nodes.emplace_back();
    for (std::size_t i = 0; i < prompt; ++i)
      user.ids.push_back(static_cast<std::int32_t>(100 + i));
    user.mask.assign(prompt, 0);
    auto &assistant = trace.nodes.emplace_back();
    assistant.parent = 0;
    assistant.sampled = true;
    for (std::size_t i = 0; i < answer; ++i) {
      assistant.ids.push_back(static_cast<std::int32_t>(500 + i));
      assistant.logprobs.push_back(-0.5F * static_cast<float>(i + 1));
    }
    assistant.mask.assign(answer, 1);
    trace.finish();
    BOOST_TEST_REQUIRE(trace.graph.trainable.size() == 1U);
    sample.nodes = trace.views;
    sample.path = &trace.graph.trainable.front();
    sample.tokens = tokens;
    sample.advantage_rule = wire::AdvantageRule::Constant;
    sample.advantage = 0.75F;
    sample.env = "math";
  }
};

std::string message_of(const result<message> &got) { return got ? "" : got.error().message; }

} // namespace

BOOST_AUTO_TEST_SUITE(gather_a_bin)

BOOST_AUTO_TEST_CASE(random_bins_equal_samples_that_were_made_token_by_token) {
  const auto base = random_seed();
  micro_batch_tensors tensors; // reused: nothing of the micro batch before may shine through
  for (std::uint64_t i = 0; i < 400; ++i) {
    BOOST_TEST_CONTEXT("seed " << base + i) {
      made_bin made;
      bin_maker(base + i).fill(made);
      auto parts = gather(made.plan);
      BOOST_TEST_REQUIRE(parts.has_value(), message_of(parts));
      auto batch = micro_batch::parse(*std::move(parts));
      BOOST_TEST_REQUIRE(batch.has_value(), (batch ? "" : batch.error().message));
      BOOST_TEST(check_arrays(*batch).has_value());
      widen(*batch, tensors);
      BOOST_TEST(tensors.step == made.plan.step);
      BOOST_TEST(tensors.rank == made.plan.rank);
      BOOST_TEST(tensors.index == made.plan.index);
      check_equal(tensors, pack_naively(made.plan));
    }
  }
}

// Boundaries reach the trainer, positions restart, per-token fields equal the unpacked ones.
BOOST_AUTO_TEST_CASE(packed_samples_equal_the_same_samples_alone) {
  const auto seed = random_seed();
  BOOST_TEST_CONTEXT("seed " << seed) {
    chat a(3, 5, 8), b(4, 2, 6), c(1, 9, 10);
    std::mt19937 random(static_cast<std::mt19937::result_type>(seed));
    bin together{.samples = {a.sample, b.sample, c.sample}};
    std::shuffle(together.samples.begin(), together.samples.end(), random);
    const auto packed = tensors_of(together);
    std::size_t at = 0;
    for (std::size_t s = 0; s < 3; ++s) {
      const auto alone = tensors_of(bin{.samples = {together.samples[s]}});
      const auto n = alone.tokens();
      const auto same = [&](const auto &whole, const auto &part) {
        return std::ranges::equal(whole.values().subspan(at, n), part.values());
      };
      BOOST_TEST(packed.sequence_lengths.values()[s] == static_cast<std::int64_t>(n));
      BOOST_TEST(same(packed.input_ids, alone.input_ids));
      BOOST_TEST(same(packed.position_ids, alone.position_ids));
      BOOST_TEST(same(packed.loss_mask, alone.loss_mask));
      BOOST_TEST(same(packed.inference_logprobs, alone.inference_logprobs));
      BOOST_TEST(same(packed.advantages, alone.advantages));
      BOOST_TEST(same(packed.temperatures, alone.temperatures));
      at += n;
    }
    BOOST_TEST(at == packed.tokens());
  }
}

// A prompt that fills seq_len leaves nothing to train: zero tokens are counted, none are made up.
BOOST_AUTO_TEST_CASE(a_cut_that_removes_the_completion_leaves_no_trainable_token) {
  constexpr std::uint32_t seq_len = 16;
  for (const std::uint32_t prompt : {seq_len - 1, seq_len, seq_len + 1}) {
    const chat one(prompt, 4, seq_len);
    const auto counts = count_components(tensors_of(bin{.samples = {one.sample}}));
    BOOST_TEST(counts.rl == (prompt < seq_len ? 1U : 0U));
    BOOST_TEST(counts.ce == 0U);
  }
}

BOOST_AUTO_TEST_CASE(a_micro_batch_without_a_trainable_token_passes_with_zero_counts) {
  const chat one(3, 5, 8);
  const auto tensors = tensors_of(bin{.dummy = true, .padding = 8, .samples = {one.sample}});
  BOOST_TEST((count_components(tensors) == component_totals{}));
  BOOST_TEST(tensors.tokens() == 16U);
}

BOOST_AUTO_TEST_CASE(a_constant_advantage_travels_as_one_number) {
  const chat one(3, 5, 8);
  auto parts = gather(bin{.samples = {one.sample, one.sample}});
  BOOST_TEST_REQUIRE(parts.has_value());
  auto batch = micro_batch::parse(*std::move(parts));
  BOOST_TEST_REQUIRE(batch.has_value());
  BOOST_TEST(batch->advantages()->values.size() == 2U);
  BOOST_TEST(batch->temperatures().values.size() == 2U);
  BOOST_TEST(batch->inference_logprobs().values.size() == 10U);
  BOOST_TEST(!batch->rl_weights().has_value());
}

BOOST_AUTO_TEST_CASE(origins_say_where_samples_came_from_and_what_was_cut) {
  chat one(3, 5, 6);
  one.sample.origin = wire::Origin(7, 1, 2, 3, 99);
  one.sample.reward = 0.25F;
  auto parts = gather(bin{.samples = {one.sample}});
  BOOST_TEST_REQUIRE(parts.has_value());
  auto batch = micro_batch::parse(*std::move(parts));
  BOOST_TEST_REQUIRE(batch.has_value());
  const auto &origin = batch->origins().front();
  BOOST_TEST(origin.ordinal() == 7U);
  BOOST_TEST(origin.branch() == 3U);
  BOOST_TEST(origin.cut() == 2U);
  BOOST_TEST(batch->rewards().front() == 0.25F);
}

BOOST_AUTO_TEST_CASE(the_same_bin_gives_the_same_bytes) {
  const auto seed = random_seed();
  BOOST_TEST_CONTEXT("seed " << seed) {
    made_bin made;
    bin_maker(seed).fill(made);
    const auto first = gather(made.plan);
    const auto second = gather(made.plan);
    BOOST_TEST_REQUIRE(first->size() == second->size());
    for (std::size_t i = 0; i < first->size(); ++i)
      BOOST_TEST(std::ranges::equal((*first)[i].bytes(), (*second)[i].bytes()));
  }
}

BOOST_AUTO_TEST_CASE(the_meter_counts_the_message_until_it_is_gone) {
  const chat one(300, 5000, 5300);
  const auto meter = std::make_shared<memory_meter>();
  {
    const auto parts = gather(bin{.samples = {one.sample}}, meter);
    BOOST_TEST_REQUIRE(parts.has_value());
    const auto size = parts->front().size();
    BOOST_TEST(meter->held.load() >= size);
    BOOST_TEST(meter->held.load() <= size + 4096);
    BOOST_TEST(meter->held_peak.load() == meter->held.load()); // it never grew
    BOOST_TEST(meter->copied.load() == size);
  }
  BOOST_TEST(meter->held.load() == 0U);
}

BOOST_AUTO_TEST_CASE(too_many_tokens_are_refused_before_anything_is_read) {
  // A span of memory that is not there: to touch it would end the test.
  const auto *nowhere = reinterpret_cast<const std::int32_t *>(std::uintptr_t{4096});
  constexpr std::uint32_t n = 300'000'000;
  node_view node;
  node.token_ids = {nowhere, n};
  node.mask = {reinterpret_cast<const std::uint8_t *>(nowhere), n};
  const branch path{.nodes = {0},
                    .mask_off = {0},
                    .rl_off = {0},
                    .ce_off = {0},
                    .ref_kl_off = {0},
                    .tokens = n,
                    .trainable = n};
  const sample_source sample{.nodes = std::span(&node, 1), .path = &path, .tokens = n};
  const auto got = gather(bin{.samples = {sample}});
  BOOST_TEST_REQUIRE(!got.has_value());
  BOOST_TEST((got.error().code == errc::too_large));
}

BOOST_AUTO_TEST_CASE(a_body_over_one_gibibyte_is_refused_before_it_is_built) {
  constexpr std::uint32_t n = limits::micro_batch_tokens;
  constexpr std::size_t size = n * sizeof(float);
  // Zeros that take no memory: they are read, never written.
  auto *memory = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  BOOST_TEST_REQUIRE(memory != MAP_FAILED);
  auto *weights = static_cast<float *>(memory);
  weights[0] = 1;
  std::vector<std::uint8_t> mask(n, 0);
  node_view node;
  node.token_ids = {static_cast<const std::int32_t *>(memory), n};
  node.mask = mask;
  node.rl_weights = node.ce_weights = node.ref_kl_weights = std::span<const float>(weights, n);
  const branch path{.nodes = {0},
                    .mask_off = {0},
                    .rl_off = {0},
                    .ce_off = {0},
                    .ref_kl_off = {0},
                    .tokens = n,
                    .trainable = 0};
  const wire::StreamSpec nodes(wire::StreamRule::Nodes, 0);
  const sample_source sample{.nodes = std::span(&node, 1),
                             .path = &path,
                             .tokens = n,
                             .rl = nodes,
                             .ce = nodes,
                             .ref_kl = nodes,
                             .env = "math"};
  const auto meter = std::make_shared<memory_meter>();
  const auto got = gather(bin{.samples = {sample}}, meter);
  munmap(memory, size);
  BOOST_TEST_REQUIRE(!got.has_value());
  BOOST_TEST((got.error().code == errc::too_large));
  BOOST_TEST(meter->held_peak.load() == 0U);
}

BOOST_AUTO_TEST_CASE(a_bin_without_samples_or_tokens_is_refused) {
  BOOST_TEST(message_of(gather(bin{.step = 3})).find("no samples") != std::string::npos);
  const chat none(3, 5, 0);
  BOOST_TEST(message_of(gather(bin{.samples = {none.sample}})).find("are to be kept") !=
             std::string::npos);
  const chat more(3, 5, 9);
  BOOST_TEST(message_of(gather(bin{.samples = {more.sample}})).find("it has 8 tokens") !=
             std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_node_whose_lengths_do_not_fit_is_refused_by_name) {
  chat one(3, 5, 8);
  one.trace.views[1].logprobs = one.trace.views[1].logprobs.first(4);
  BOOST_TEST(message_of(gather(bin{.samples = {one.sample}})) ==
             "step 0, rank 0, micro batch 0: sample 0 of 'math': node 1: logprobs has 4 values for "
             "5 true mask entries");
  chat two(3, 5, 8);
  two.trace.views[0].mask = two.trace.views[0].mask.first(2);
  BOOST_TEST(message_of(gather(bin{.samples = {two.sample}})).find("mask has 2 values") !=
             std::string::npos);
}

BOOST_AUTO_TEST_CASE(experts_on_some_samples_only_are_refused) {
  chat plain(3, 5, 8);
  chat routed(3, 5, 8);
  made_array rows{"", dtype::uint8, {3, 1, 1}, std::vector<std::byte>(3)};
  made_array more{"", dtype::uint8, {5, 1, 1}, std::vector<std::byte>(5)};
  routed.trace.views[0].routed_experts = rows.view(3);
  routed.trace.views[1].routed_experts = more.view(5);
  BOOST_TEST(gather(bin{.samples = {routed.sample}}).has_value());
  BOOST_TEST(!gather(bin{.samples = {routed.sample, plain.sample}}).has_value());
  BOOST_TEST(!gather(bin{.samples = {plain.sample, routed.sample}}).has_value());
  more.type = dtype::int16;
  more.bytes.resize(10);
  routed.trace.views[1].routed_experts = more.view(5);
  BOOST_TEST(message_of(gather(bin{.samples = {routed.sample}})).find("another dtype") !=
             std::string::npos);
}

BOOST_AUTO_TEST_CASE(kept_tokens_follow_their_tokens_and_never_keep_a_sample_out_of_a_bin) {
  const auto ints = [](const std::vector<std::int32_t> &values) {
    const auto bytes = std::as_bytes(std::span(values));
    return made_array{"", dtype::int32, {values.size()}, {bytes.begin(), bytes.end()}};
  };
  const auto values_of = [](const array_tensor &tensor) {
    std::vector<std::int32_t> out(tensor.bytes.size() / sizeof(std::int32_t));
    std::memcpy(out.data(), tensor.bytes.values().data(), tensor.bytes.size());
    return out;
  };
  const chat plain(1, 1, 2);
  chat top_k(2, 3, 4); // one token is cut off
  const auto counts = ints({2, 1, 3});
  const auto ids = ints({50, 51, 60, 70, 71, 72});
  top_k.trace.views[1].kept_counts = counts.view(1);
  top_k.trace.views[1].kept_ids = ids.view(2);
  const auto tensors = tensors_of(bin{.padding = 1, .samples = {plain.sample, top_k.sample}});
  BOOST_TEST(values_of(tensors.kept_counts) == (std::vector<std::int32_t>{0, 0, 0, 0, 2, 1, 0}),
             boost::test_tools::per_element());
  BOOST_TEST(values_of(tensors.kept_ids) == (std::vector<std::int32_t>{50, 51, 60}),
             boost::test_tools::per_element());
  BOOST_TEST(!tensors_of(bin{.samples = {plain.sample}}).kept_counts.has_value());

  const auto fewer = ints({2, 1});
  top_k.trace.views[1].kept_counts = fewer.view(2);
  BOOST_TEST(message_of(gather(bin{.samples = {plain.sample, top_k.sample}})) ==
             "step 0, rank 0, micro batch 0: sample 1: kept_counts has 2 values for 3 token ids");
}

BOOST_AUTO_TEST_CASE(images_with_other_names_or_missing_rows_are_refused) {
  chat one(3, 5, 8), two(3, 5, 8);
  made_array pixels{"pixel_values", dtype::uint8, {4, 2}, std::vector<std::byte>(8)};
  made_array other{"pixels", dtype::uint8, {4, 2}, std::vector<std::byte>(8)};
  one.trace.views[0].tensors.push_back(pixels.view(4));
  two.trace.views[0].tensors.push_back(other.view(4));
  BOOST_TEST(gather(bin{.samples = {one.sample}}).has_value());
  BOOST_TEST(!gather(bin{.samples = {one.sample, two.sample}}).has_value());

  const std::vector<std::uint8_t> types(3, 1);
  one.trace.views[0].mm_token_type_ids = types;
  one.sample.tokens = 7; // cut: the rows of one image are asked for, and there is no grid
  one.sample.images = 1;
  BOOST_TEST(message_of(gather(bin{.samples = {one.sample}})).find("image_grid_thw has 0") !=
             std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
