// SPDX-License-Identifier: Apache-2.0
#include "schema/body.hpp"

#include <cstring>

#include "schema/episode.hpp"
#include "schema/limits.hpp"
#include "tests/support/episodes.hpp"

#include <boost/test/unit_test.hpp>

namespace millrace {
namespace {

using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;

frame some_body() { return encode(test::some_episode()).value().front(); }

bool parses(const frame &bytes) { return parse<wire::EpisodeFrame>(bytes).has_value(); }

/// The bytes of `from`, `shift` bytes after a multiple of 64.
frame moved_by(const frame &from, std::size_t shift) {
  buffer memory(from.size() + shift);
  std::memcpy(memory.data() + shift, from.data(), from.size());
  return std::move(memory).freeze(shift, from.size());
}

Offset<wire::GroupKey> any_key(FlatBufferBuilder &builder) {
  return create_key(builder, test::some_key());
}

BOOST_AUTO_TEST_CASE(a_body_is_read_where_it_lies) {
  const auto bytes = some_body();
  const auto parsed = parse<wire::EpisodeFrame>(bytes);
  BOOST_REQUIRE(parsed);
  BOOST_TEST(parsed->bytes().data() == bytes.data());
  BOOST_TEST(text_of((*parsed)->episode()) == "e0");
}

BOOST_AUTO_TEST_CASE(a_body_keeps_its_bytes_alive) {
  auto parsed = parse<wire::EpisodeFrame>(some_body());
  BOOST_REQUIRE(parsed);
  const auto copy = *parsed;
  parsed = fail(errc::io, "gone");
  BOOST_TEST(text_of(copy->episode()) == "e0");
}

BOOST_AUTO_TEST_CASE(a_buffer_at_any_address_is_read) {
  for (const std::size_t shift : {0U, 1U, 2U, 4U, 7U, 8U, 12U, 16U}) {
    const auto meter = std::make_shared<memory_meter>();
    const auto parsed = parse<wire::EpisodeFrame>(moved_by(some_body(), shift), meter);
    BOOST_REQUIRE(parsed);
    const auto ids = span_of((*parsed)->nodes()->Get(1)->token_ids());
    BOOST_TEST(reinterpret_cast<std::uintptr_t>(ids.data()) % alignof(std::int32_t) == 0U);
    BOOST_TEST(ids[4] == 104);
    BOOST_TEST((meter->held > 0U) == (shift % limits::body_alignment != 0));
  }
}

/// An Extent vector (8-byte elements) whose data starts at `data_at`, and nothing else wrong.
frame index_with_extents_at(std::size_t data_at) {
  // SealedIndex { frames: [SealedFrame { extents: [Extent; 1] }] }, laid out by hand.
  std::vector<std::byte> bytes(data_at + 24 + 8);
  const auto put32 = [&](std::size_t at, std::uint32_t value) {
    std::memcpy(bytes.data() + at, &value, 4);
  };
  const auto put16 = [&](std::size_t at, std::uint16_t value) {
    std::memcpy(bytes.data() + at, &value, 2);
  };
  put32(0, 16); // root table
  std::memcpy(bytes.data() + 4, "MRSI", 4);
  put16(8, 6), put16(10, 8), put16(12, 4); // vtable: its size, the table's size, field 0 at 4
  put32(16, 8);                            // root table: its vtable is 8 bytes before it
  put32(20, 4);                            // frames at 24
  put32(24, 1);                            // one frame
  put32(28, 8);                            // at 36
  put32(36, 28);                           // table: its vtable at 8
  put32(40, static_cast<std::uint32_t>(data_at - 4 - 40));
  put32(data_at - 4, 1); // one extent
  return frame::copy_of(bytes);
}

BOOST_AUTO_TEST_CASE(a_vector_whose_elements_are_misaligned_is_refused) {
  BOOST_TEST(parse<wire::SealedIndex>(index_with_extents_at(0x48)).has_value());
  const auto misaligned = index_with_extents_at(0x4c); // its length is 4-aligned, its data is not 8
  flatbuffers::Verifier verifier(reinterpret_cast<const std::uint8_t *>(misaligned.data()),
                                 misaligned.size());
  BOOST_TEST(verifier.VerifyBuffer<wire::SealedIndex>("MRSI")); // the trap that this guards against
  BOOST_TEST(!parse<wire::SealedIndex>(misaligned));
}

BOOST_AUTO_TEST_CASE(another_identifier_is_refused_by_name) {
  const auto other = parse<wire::GroupHeader>(some_body());
  BOOST_REQUIRE(!other);
  BOOST_TEST(other.error().message.find("MRGH") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_body_cut_off_anywhere_is_refused_or_reads_inside_itself) {
  const auto whole = some_body();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const auto parsed = parse<wire::EpisodeFrame>(frame::copy_of(whole.bytes().first(size)));
    BOOST_REQUIRE_MESSAGE(!parsed || size > whole.size() - 4, "accepted " << size << " bytes");
  }
}

BOOST_AUTO_TEST_CASE(a_body_with_a_changed_byte_never_reads_outside_itself) {
  const auto whole = some_body();
  std::vector<std::byte> bytes(whole.bytes().begin(), whole.bytes().end());
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i)
    for (const unsigned flip : {0x01U, 0x80U, 0xFFU}) {
      bytes[i] ^= static_cast<std::byte>(flip);
      if (const auto frame = episode_frame::parse({frame::copy_of(bytes)})) {
        static_cast<void>(check_elements(*frame, {}));
        for (std::uint32_t n = 0; n < frame->node_count(); ++n)
          for (const auto id : frame->node(n).token_ids) // the sanitizers watch these reads
            sum += static_cast<std::uint32_t>(id);
      }
      bytes[i] ^= static_cast<std::byte>(flip);
    }
  BOOST_TEST(sum > 0U);
}

BOOST_AUTO_TEST_CASE(nodes_that_share_one_vector_beyond_the_size_of_the_buffer_are_refused) {
  const auto with_nodes = [](std::size_t count) {
    FlatBufferBuilder builder;
    const std::vector<std::int32_t> ids(1000, 7);
    const auto shared = builder.CreateVector(ids);
    std::vector<Offset<wire::Node>> nodes;
    for (std::size_t i = 0; i < count; ++i) {
      wire::NodeBuilder node(builder);
      node.add_token_ids(shared);
      nodes.push_back(node.Finish());
    }
    const auto nodes_at = builder.CreateVector(nodes);
    const auto key = any_key(builder);
    const auto episode = builder.CreateString("e0");
    wire::EpisodeFrameBuilder root(builder);
    root.add_key(key);
    root.add_episode(episode);
    root.add_nodes(nodes_at);
    return finish_body<wire::EpisodeFrame>(builder, root.Finish());
  };
  BOOST_TEST(parses(with_nodes(1)));
  BOOST_TEST(!parses(with_nodes(2)));
  BOOST_TEST(!parses(with_nodes(10'000))); // 40 MB claimed by 120 KB
}

BOOST_AUTO_TEST_CASE(traces_that_share_one_hint_beyond_the_size_of_the_buffer_are_refused) {
  const auto with_traces = [](std::size_t count, bool as_text) {
    FlatBufferBuilder builder;
    const auto ids = builder.CreateVector(std::vector<std::int32_t>(1000, 7));
    const auto text = builder.CreateString(std::string(4000, 'x'));
    std::vector<Offset<wire::TraceResult>> traces;
    for (std::size_t i = 0; i < count; ++i) {
      wire::TraceResultBuilder trace(builder);
      if (as_text)
        trace.add_hint(text);
      else
        trace.add_hint_token_ids(ids);
      traces.push_back(trace.Finish());
    }
    const auto traces_at = builder.CreateVector(traces);
    wire::EpisodeEndBuilder finish(builder);
    finish.add_traces(traces_at);
    const auto finish_at = finish.Finish();
    const auto key = any_key(builder);
    const auto episode = builder.CreateString("e0");
    wire::EpisodeFrameBuilder root(builder);
    root.add_key(key);
    root.add_episode(episode);
    root.add_finish(finish_at);
    return finish_body<wire::EpisodeFrame>(builder, root.Finish());
  };
  for (const bool as_text : {false, true}) {
    BOOST_TEST(parses(with_traces(1, as_text)));
    BOOST_TEST(!parses(with_traces(3, as_text)));
  }
}

/// `width` times the same child, at each of three levels: width^3 branches, about 12 * width bytes.
frame header_of_shared_children(std::size_t width) {
  FlatBufferBuilder builder;
  const auto leaf = wire::CreateBranchHeader(builder, 1, 10, 5, 5);
  const auto branches = builder.CreateVector(std::vector(width, leaf));
  wire::TraceHeaderBuilder trace(builder);
  trace.add_branches(branches);
  const auto traces = builder.CreateVector(std::vector(width, trace.Finish()));
  wire::EpisodeHeaderBuilder episode(builder);
  episode.add_traces(traces);
  const auto episodes = builder.CreateVector(std::vector(width, episode.Finish()));
  const auto key = any_key(builder);
  wire::GroupHeaderBuilder root(builder);
  root.add_key(key);
  root.add_episodes(episodes);
  return finish_body<wire::GroupHeader>(builder, root.Finish());
}

BOOST_AUTO_TEST_CASE(tables_that_share_children_many_times_over_are_refused) {
  BOOST_TEST(parse<wire::GroupHeader>(header_of_shared_children(1)).has_value());
  for (const std::size_t width : {8U, 100U, 10'000U}) // the last one claims 10^12 branches
    BOOST_TEST(!parse<wire::GroupHeader>(header_of_shared_children(width)));
}

BOOST_AUTO_TEST_CASE(a_body_over_the_limit_is_refused_before_it_is_read) {
  // No memory stands behind these bytes: reading them would end the test.
  const std::span<const std::byte> nowhere{reinterpret_cast<const std::byte *>(16),
                                           limits::body_bytes + 1};
  const auto parsed = parse<wire::EpisodeFrame>(frame(nullptr, nowhere));
  BOOST_REQUIRE(!parsed);
  BOOST_TEST(static_cast<int>(parsed.error().code) == static_cast<int>(errc::too_large));
}

BOOST_AUTO_TEST_CASE(a_body_without_a_required_field_is_refused) {
  FlatBufferBuilder builder;
  builder.Finish(Offset<wire::GroupSize>(builder.EndTable(builder.StartTable())), "MRGS");
  const auto bytes =
      frame::copy_of(std::as_bytes(std::span(builder.GetBufferPointer(), builder.GetSize())));
  BOOST_TEST(!parse<wire::GroupSize>(bytes));
}

} // namespace
} // namespace millrace
