// SPDX-License-Identifier: Apache-2.0
#include "schema/sealed_episode.hpp"

#include "runtime/random.hpp"
#include "schema/limits.hpp"
#include "tests/support/episodes.hpp"

#include <boost/test/unit_test.hpp>

namespace millrace {
namespace {

result<sealed_episode> try_seal(const std::vector<frame_data> &frames) {
  std::vector<episode_frame> parsed;
  for (const auto &data : frames)
    parsed.push_back(test::parsed(data));
  return sealed_episode::seal(std::move(parsed));
}

/// Episode in two frames whose answer has `n` tokens.
std::vector<frame_data> episode_with_answer_of(std::uint32_t n) {
  auto frames = test::some_episode_in_two();
  frames[1].nodes[0] = test::some_node(1, "assistant", n);
  frames[1].finish->tokens = 3 + n;
  return frames;
}

BOOST_AUTO_TEST_CASE(small_frames_share_one_slab) {
  const auto meter = std::make_shared<memory_meter>();
  std::vector<episode_frame> frames;
  for (const auto &data : test::some_episode_in_two())
    frames.push_back(test::parsed(data));
  const auto sealed = sealed_episode::seal(frames, meter).value();
  BOOST_TEST(sealed.parts().size() == 2U);
  BOOST_TEST(meter->copied == sealed.parts()[1].size());
  BOOST_TEST(sealed.nodes(0).size() == 2U);
  BOOST_TEST(sealed.node(0, 1).token_ids[4] == 104);
}

BOOST_AUTO_TEST_CASE(large_frames_stay_where_they_are) {
  std::vector<episode_frame> frames;
  for (const auto &data : episode_with_answer_of(100'000))
    frames.push_back(test::parsed(data));
  const auto *before = frames[1].parts().front().data();
  const auto sealed = sealed_episode::seal(frames).value();
  BOOST_REQUIRE_EQUAL(sealed.parts().size(), 3U);
  BOOST_TEST(sealed.parts()[2].data() == before);
}

BOOST_AUTO_TEST_CASE(a_sealed_episode_reads_back_without_copying) {
  auto frames = episode_with_answer_of(30'000);
  frames[1].nodes[0].routed_experts = test::some_experts(30'000);
  const auto sealed = test::sealed(frames);
  const auto again = sealed_episode::parse(sealed.parts()).value();
  BOOST_TEST(again.node(0, 1).token_ids.data() == sealed.node(0, 1).token_ids.data());
  BOOST_TEST(again.tokens() == 30'003U);
  BOOST_TEST(check_elements(again, {}).has_value());
}

BOOST_AUTO_TEST_CASE(frames_that_make_no_whole_episode_are_refused) {
  const auto frames = test::some_episode_in_two();
  BOOST_TEST(try_seal(frames).has_value());
  BOOST_TEST(!try_seal({}));
  BOOST_TEST(!try_seal({frames[0]}));            // no end
  BOOST_TEST(!try_seal({frames[1]}));            // no beginning
  BOOST_TEST(!try_seal({frames[1], frames[0]})); // out of order
  BOOST_TEST(!try_seal({frames[0], frames[0], frames[1]}));
  auto other = frames;
  other[1].episode = "e1";
  BOOST_TEST(!try_seal(other));
  other = frames;
  other[1].attempt = 1;
  BOOST_TEST(!try_seal(other));
  other = frames;
  other[1].key.env = "other";
  BOOST_TEST(!try_seal(other));
}

BOOST_AUTO_TEST_CASE(counts_that_differ_from_what_came_are_refused) {
  const auto changed = [](auto change) {
    auto frames = test::some_episode_in_two();
    change(frames);
    return try_seal(frames).has_value();
  };
  BOOST_TEST(changed([](auto &) {}));
  BOOST_TEST(!changed([](auto &frames) { frames[1].finish->tokens += 1; }));
  BOOST_TEST(!changed([](auto &frames) { frames[1].finish->nodes -= 1; }));
  BOOST_TEST(!changed([](auto &frames) { frames[1].finish->frames = 3; }));
  BOOST_TEST(!changed([](auto &frames) { frames[1].nodes[0].index = 2; }));
  BOOST_TEST(!changed([](auto &frames) { frames[1].nodes[0].trace = 1; }));
  BOOST_TEST(!changed([](auto &frames) { frames[1].finish->traces.clear(); }));
}

/// A sealed episode whose index names these extents, one frame each, over the parts of a real one.
result<sealed_episode> read_with(const std::vector<std::vector<wire::Extent>> &frames) {
  auto parts = test::sealed(test::some_episode_in_two()).parts();
  flatbuffers::FlatBufferBuilder builder;
  std::vector<flatbuffers::Offset<wire::SealedFrame>> index;
  for (const auto &extents : frames)
    index.push_back(wire::CreateSealedFrame(
        builder, builder.CreateVectorOfStructs(extents.data(), extents.size())));
  parts[0] = finish_body<wire::SealedIndex>(
      builder, wire::CreateSealedIndex(builder, builder.CreateVector(index)));
  return sealed_episode::parse(parts);
}

bool accepts(const std::vector<std::vector<wire::Extent>> &frames) {
  return read_with(frames).has_value();
}

BOOST_AUTO_TEST_CASE(an_index_that_names_bytes_outside_its_parts_is_refused) {
  const auto parts = test::sealed(test::some_episode_in_two()).parts();
  const auto index = parse<wire::SealedIndex>(parts[0]).value();
  const auto first = *index->frames()->Get(0)->extents()->Get(0);
  const auto second = *index->frames()->Get(1)->extents()->Get(0);
  const auto size = parts[1].size();
  BOOST_TEST(accepts({{first}, {second}}));
  BOOST_TEST(!accepts({}));
  BOOST_TEST(!accepts({{}, {second}}));
  for (const auto &bad :
       {wire::Extent(0, 0, 16), wire::Extent(2, 0, 16), wire::Extent(~0U, 0, 16),
        wire::Extent(1, 8, 16), wire::Extent(1, size, 16), wire::Extent(1, 0, size + 1),
        wire::Extent(1, 16, ~0ULL - 8), wire::Extent(1, ~0ULL - 15, 32)})
    BOOST_TEST(!accepts({{first}, {bad}}));
}

BOOST_AUTO_TEST_CASE(frames_that_share_bytes_many_times_over_are_refused) {
  const auto parts = test::sealed(test::some_episode_in_two()).parts();
  const auto first =
      *parse<wire::SealedIndex>(parts[0]).value()->frames()->Get(0)->extents()->Get(0);
  const auto refused = read_with(std::vector(1000, std::vector{first}));
  BOOST_REQUIRE(!refused);
  BOOST_TEST(refused.error().message.find("overlap") != std::string::npos,
             refused.error().message); // before the frames are looked at one by one
}

BOOST_AUTO_TEST_CASE(changed_bytes_never_lead_outside) {
  auto frames = test::some_episode_in_two();
  frames[1].nodes[0].routed_experts = test::some_experts(5);
  const auto parts = test::sealed(frames).parts();
  random_source random(20240607);
  std::size_t accepted = 0;
  for (int round = 0; round < 20'000; ++round) {
    message changed;
    for (const auto &part : parts) {
      std::vector<std::byte> bytes(part.bytes().begin(), part.bytes().end());
      for (auto n = random.below(3); n > 0; --n)
        bytes[random.below(static_cast<std::uint32_t>(bytes.size()))] =
            static_cast<std::byte>(random.below(256));
      changed.push_back(frame::copy_of(bytes));
    }
    const auto sealed = sealed_episode::parse(std::move(changed));
    if (!sealed || !check_elements(*sealed, {1000}))
      continue;
    ++accepted;
    for (std::size_t t = 0; t < sealed->trace_count(); ++t)
      for (const auto &node : sealed->nodes(t)) {
        BOOST_REQUIRE(node.mask.size() == node.token_ids.size());
        BOOST_REQUIRE(node.logprobs.size() == count_true(node.mask));
      }
  }
  BOOST_TEST(accepted > 0U);
}

} // namespace
} // namespace millrace
