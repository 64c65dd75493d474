// SPDX-License-Identifier: Apache-2.0
#include <boost/test/unit_test.hpp>

#include <cstring>
#include <functional>
#include <random>

#include "actors/packer/gather.hpp"
#include "actors/packer/micro_batch.hpp"
#include "actors/trainer/tensors.hpp"
#include "tests/support/random_bins.hpp"

using namespace millrace;
using namespace millrace::test;

namespace {

/// A micro batch of two sequences as values, to be spoiled one field at a time.
struct parts_of_batch {
  std::vector<std::int32_t> input_ids = {10, 11, 12, 13, 14};
  std::vector<std::uint8_t> flags = {0, 3, 3, 0, 2};
  std::vector<std::uint32_t> lengths = {3, 2};
  std::vector<std::uint32_t> envs = {1, 0};
  std::vector<std::string> env_names = {"math", "code"};
  std::uint32_t padding = 3;
  bool dummy = false;
  bool has_logprobs = true;
  std::vector<std::uint8_t> encodings = {1, 1};
  std::vector<float> values = {-1, -2, -3};
  std::vector<std::uint8_t> weight_encodings = {0, 3};
  std::vector<float> weights = {1, 0, 1, 0.5F};
  bool has_weights = true;
  std::vector<std::uint8_t> types = {0, 0, 1, 1, 0};
  std::vector<std::uint64_t> expert_shape = {5, 1, 2};
  std::vector<std::uint64_t> image_shape = {2, 2};
  std::vector<std::string> image_names = {"a", "b"};
  std::size_t origins = 2;
  std::vector<float> rewards = {0.5F, -1};
  std::vector<std::int32_t> kept_counts = {0, 2, 1, 0, 0};
  std::vector<std::int32_t> kept_ids = {4, 5, 6};
  bool has_kept_ids = true;

  message encode() const {
    flatbuffers::FlatBufferBuilder builder;
    message parts(1);
    const auto stream = [&](const auto &e, const auto &v) {
      const auto e_at = builder.CreateVector(e);
      return wire::CreateStream(builder, e_at, builder.CreateVector(v));
    };
    const auto logprobs = has_logprobs ? stream(encodings, values) : 0;
    const auto temperatures =
        stream(std::vector<std::uint8_t>(lengths.size(), 4), std::vector<float>(lengths.size(), 1));
    const auto rl = has_weights ? stream(weight_encodings, weights) : 0;
    const auto experts = array(builder, parts, "", expert_shape);
    std::vector<flatbuffers::Offset<wire::Array>> images;
    for (const auto &name : image_names)
      images.push_back(array(builder, parts, name, image_shape));
    const auto counts = array(builder, parts, kept_counts);
    const auto kept = has_kept_ids ? array(builder, parts, kept_ids) : 0;
    const auto ids_at = builder.CreateVector(input_ids);
    const auto flags_at = builder.CreateVector(flags);
    const auto lengths_at = builder.CreateVector(lengths);
    const auto envs_at = builder.CreateVector(envs);
    const auto names_at = builder.CreateVectorOfStrings(env_names);
    const auto types_at = builder.CreateVector(types);
    const auto images_at = builder.CreateVector(images);
    const auto origins_at =
        builder.CreateVectorOfStructs(std::vector<wire::Origin>(origins, wire::Origin()));
    const auto rewards_at = builder.CreateVector(rewards);
    parts.front() = finish_body<wire::MicroBatch>(
        builder,
        wire::CreateMicroBatch(builder, 1, 2, 3, dummy, ids_at, flags_at, lengths_at, envs_at,
                               names_at, padding, logprobs, temperatures, 0, 0, rl, 0, 0, types_at,
                               experts, images_at, origins_at, counts, kept, rewards_at));
    return parts;
  }

private:
  static flatbuffers::Offset<wire::Array> array(flatbuffers::FlatBufferBuilder &builder,
                                                message &parts,
                                                const std::vector<std::int32_t> &values) {
    const std::vector<std::uint64_t> shape{values.size()};
    return add_array(builder, parts, "", dtype::int32, shape,
                     frame::copy_of(std::as_bytes(std::span(values))));
  }
  static flatbuffers::Offset<wire::Array> array(flatbuffers::FlatBufferBuilder &builder,
                                                message &parts, const std::string &name,
                                                const std::vector<std::uint64_t> &shape) {
    std::size_t bytes = 1;
    for (auto dimension : shape)
      bytes *= dimension;
    return add_array(builder, parts, name, dtype::uint8, shape,
                     frame::copy_of(std::vector<std::byte>(bytes)));
  }
};

std::string refusal(const std::function<void(parts_of_batch &)> &spoil,
                    const micro_batch_limits &accepted = {}) {
  parts_of_batch parts;
  spoil(parts);
  auto got = micro_batch::parse(parts.encode(), nullptr, accepted);
  return got ? "accepted" : got.error().message;
}

/// Whether the refusal of what `spoil` made names `text`.
bool refused(const std::function<void(parts_of_batch &)> &spoil, const std::string &text) {
  const auto got = refusal(spoil);
  BOOST_TEST_MESSAGE(got);
  return got.find(text) != std::string::npos;
}

} // namespace

BOOST_AUTO_TEST_SUITE(micro_batch_from_outside)

BOOST_AUTO_TEST_CASE(a_sound_micro_batch_is_read) {
  auto got = micro_batch::parse(parts_of_batch{}.encode());
  BOOST_TEST_REQUIRE(got.has_value(), (got ? "" : got.error().message));
  BOOST_TEST(got->tokens() == 5U);
  BOOST_TEST(got->sequences() == 2U);
  BOOST_TEST(got->env_name(0) == "code");
  BOOST_TEST(got->env_name(1) == "math");
  BOOST_TEST(got->sequence_values()[0] == 2U);
  BOOST_TEST(got->sequence_values()[1] == 1U);
  BOOST_TEST(got->routed_experts()->rows() == 5U);
  BOOST_TEST(got->mm_kwargs().size() == 2U);
  BOOST_TEST(check_arrays(*got).has_value());
}

BOOST_AUTO_TEST_CASE(sequence_lengths_that_do_not_sum_to_the_tokens_are_refused) {
  BOOST_TEST(refused([](auto &b) { b.lengths = {3, 3}; }, "sum to 6 for 5"));
  BOOST_TEST(refused([](auto &b) { b.lengths = {2, 2}; }, "sum to 4 for 5"));
  BOOST_TEST(refused([](auto &b) { b.lengths = {5, 0}; }, "holds 0"));
  BOOST_TEST(refused([](auto &b) { b.lengths = {0xFFFFFFFF, 6}; }, "sum to 4294967301"));
  BOOST_TEST(refused([](auto &b) { b.lengths = {}; }, "no sequences"));
}

BOOST_AUTO_TEST_CASE(flags_of_another_length_or_meaning_are_refused) {
  BOOST_TEST(refused([](auto &b) { b.flags.pop_back(); }, "flags has 4"));
  BOOST_TEST(refused([](auto &b) { b.flags[3] = 1; }, "flags holds"));
  BOOST_TEST(refused([](auto &b) { b.flags[3] = 4; }, "flags holds"));
}

BOOST_AUTO_TEST_CASE(streams_whose_encodings_and_values_do_not_fit_are_refused) {
  BOOST_TEST(refused([](auto &b) { b.values.push_back(0); }, "inference_logprobs has 4"));
  BOOST_TEST(refused([](auto &b) { b.values.pop_back(); }, "inference_logprobs has 2"));
  BOOST_TEST(refused([](auto &b) { b.encodings = {1}; }, "inference_logprobs has 1"));
  BOOST_TEST(refused([](auto &b) { b.encodings = {1, 5}; }, "unknown encoding 5"));
  BOOST_TEST(refused([](auto &b) { b.weights = {}; }, "rl_weights has 0"));
  BOOST_TEST(refused([](auto &b) { b.has_logprobs = false; }, "absent"));
}

BOOST_AUTO_TEST_CASE(kept_tokens_whose_counts_do_not_fit_are_refused) {
  BOOST_TEST(refused([](auto &b) { b.kept_counts.pop_back(); }, "kept_counts has 4 values for 5"));
  BOOST_TEST(refused([](auto &b) { b.kept_ids.pop_back(); }, "kept_ids has 2 values"));
  BOOST_TEST(refused([](auto &b) { b.kept_counts = {0, 4, -1, 0, 0}; }, "kept_counts[2] is -1"));
  BOOST_TEST(refused([](auto &b) { b.has_kept_ids = false; }, "without kept_ids"));
  const auto nothing = [](auto &b) {
    b.expert_shape = {5, 1, 1}; // 8 bytes with padding
    b.kept_counts = {0, 5, 0, 0, 0};
    b.kept_ids = {1, 2, 3, 4, 5}; // 20 bytes; counts have 32
  };
  BOOST_TEST(refusal(nothing, {.tensor_bytes = 32}) == "accepted");
  BOOST_TEST(refusal(nothing, {.tensor_bytes = 31}).find("kept_counts") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(names_types_and_origins_that_do_not_fit_are_refused) {
  BOOST_TEST(refused([](auto &b) { b.envs = {1, 2}; }, "sequence_envs holds 2 for 2"));
  BOOST_TEST(refused([](auto &b) { b.envs = {1}; }, "sequence_envs has 1"));
  BOOST_TEST(refused([](auto &b) { b.env_names = {}; }, "for 0 names"));
  BOOST_TEST(refused([](auto &b) { b.types.push_back(0); }, "mm_token_type_ids has 6"));
  BOOST_TEST(refused([](auto &b) { b.origins = 1; }, "origins has 1"));
  BOOST_TEST(refused([](auto &b) { b.rewards.resize(1); }, "rewards has 1"));
}

BOOST_AUTO_TEST_CASE(arrays_that_do_not_fit_are_refused) {
  BOOST_TEST(refused([](auto &b) { b.expert_shape = {4, 1, 2}; }, "routed_experts has 4"));
  BOOST_TEST(refused([](auto &b) { b.expert_shape = {5, 2}; }, "not 3"));
  BOOST_TEST(refused([](auto &b) { b.image_names = {"b", "a"}; }, "'a' comes after 'b'"));
  BOOST_TEST(refused([](auto &b) { b.image_names = {"a", "a"}; }, "'a' comes after 'a'"));
  BOOST_TEST(refused([](auto &b) { b.image_names = {""}; }, "'' comes after ''"));
}

BOOST_AUTO_TEST_CASE(a_dummy_that_trains_is_refused) {
  BOOST_TEST(refused([](auto &b) { b.dummy = true; }, "trainable tokens"));
  BOOST_TEST(refused(
      [](auto &b) {
        b.dummy = true;
        b.flags = {0, 2, 2, 0, 2};
      },
      "weight streams"));
}

BOOST_AUTO_TEST_CASE(padding_beyond_what_the_receiver_accepts_is_refused) {
  BOOST_TEST(refused([](auto &b) { b.padding = 0xFFFFFFFF; }, "at most"));
  BOOST_TEST(refusal([](auto &) {}, {.tokens = 8}) == "accepted");
  BOOST_TEST(refusal([](auto &) {}, {.tokens = 7}).find("at most 7") != std::string::npos);
  BOOST_TEST(refusal([](auto &) {}, {.tensor_bytes = 15}).find("over 15 bytes") !=
             std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_changed_array_fails_its_checksum) {
  auto parts = parts_of_batch{}.encode();
  std::vector<std::byte> changed(parts[1].size(), std::byte{7});
  parts[1] = frame::copy_of(changed);
  auto got = micro_batch::parse(std::move(parts));
  BOOST_TEST_REQUIRE(got.has_value());
  BOOST_TEST(!check_arrays(*got).has_value());
}

BOOST_AUTO_TEST_CASE(missing_parts_are_refused) {
  auto parts = parts_of_batch{}.encode();
  parts.pop_back();
  BOOST_TEST(!micro_batch::parse(parts).has_value());
  BOOST_TEST(!micro_batch::parse({}).has_value());
}

BOOST_AUTO_TEST_CASE(a_body_at_an_odd_address_is_copied_and_read) {
  auto parts = parts_of_batch{}.encode();
  std::vector<std::byte> shifted(parts.front().size() + 1);
  std::memcpy(shifted.data() + 1, parts.front().data(), parts.front().size());
  const auto owner = std::make_shared<std::vector<std::byte>>(shifted);
  parts.front() = frame(owner, std::span(*owner).subspan(1));
  BOOST_TEST(micro_batch::parse(std::move(parts)).has_value());
}

// What is let in after random damage must still be safe to widen (seen under the sanitizers).
BOOST_AUTO_TEST_CASE(damaged_bytes_are_refused_or_safe) {
  const std::uint64_t seed = std::random_device{}();
  BOOST_TEST_CONTEXT("seed " << seed) {
    bin_maker maker(seed);
    made_bin made;
    maker.fill(made);
    const auto good = *gather(made.plan);
    micro_batch_tensors tensors;
    for (int i = 0; i < 3000; ++i) {
      auto parts = good;
      std::vector<std::byte> body(good.front().bytes().begin(), good.front().bytes().end());
      if (maker.chance(0.1))
        body.resize(maker.pick(0, body.size()));
      for (auto flips = maker.pick(0, 3); flips > 0 && !body.empty(); --flips)
        body[maker.pick(0, body.size() - 1)] ^= static_cast<std::byte>(1U << maker.pick(0, 7));
      parts.front() = frame::copy_of(body);
      const auto got =
          micro_batch::parse(parts, nullptr, {.tokens = 1 << 16, .tensor_bytes = 1 << 20});
      if (got)
        widen(*got, tensors);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
