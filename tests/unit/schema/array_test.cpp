// SPDX-License-Identifier: Apache-2.0
#include "schema/array.hpp"

#include <numeric>

#include "schema/limits.hpp"
#include "tests/support/episodes.hpp"

#include <boost/test/unit_test.hpp>

namespace millrace {
namespace {

/// A descriptor in a buffer of its own, as a hostile sender may write it.
struct descriptor {
  std::uint8_t type = static_cast<std::uint8_t>(wire::DType::UInt8);
  std::vector<std::uint64_t> shape{4, 2};
  std::uint32_t first_part = 1;
  std::uint32_t parts = 1;
};

/// What view_array() says to it, with parts of these sizes after the body.
result<std::size_t> viewed(const descriptor &what, const std::vector<std::size_t> &sizes) {
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(wire::CreateArray(builder, builder.CreateString("x"),
                                   static_cast<wire::DType>(what.type),
                                   builder.CreateVector(what.shape), what.first_part, what.parts));
  message parts(1);
  for (const auto size : sizes)
    parts.push_back(frame::copy_of(std::vector<std::byte>(size)));
  const auto view =
      view_array(*flatbuffers::GetRoot<wire::Array>(builder.GetBufferPointer()), parts);
  if (!view)
    return tl::unexpected(view.error());
  return view->bytes();
}

BOOST_AUTO_TEST_CASE(an_array_comes_back_as_it_was_added) {
  std::vector<std::int64_t> values(12);
  std::iota(values.begin(), values.end(), std::int64_t{-3});
  flatbuffers::FlatBufferBuilder builder;
  message parts(1);
  const std::vector<std::uint64_t> shape{4, 3};
  builder.Finish(add_array(builder, parts, "grid", dtype::int64, shape, test::bytes_of(values)));
  const auto &array = *flatbuffers::GetRoot<wire::Array>(builder.GetBufferPointer());
  const auto view = view_array(array, parts).value();
  BOOST_TEST(view.name == "grid");
  BOOST_TEST(static_cast<int>(view.type) == static_cast<int>(dtype::int64));
  BOOST_TEST(view.rows() == 4U);
  BOOST_TEST(view.row_bytes() == 24U);
  BOOST_REQUIRE_EQUAL(view.pieces.size(), 1U);
  BOOST_TEST(std::ranges::equal(view.pieces[0], std::as_bytes(std::span(values))));
  BOOST_TEST(check_array(array, view).has_value());
}

BOOST_AUTO_TEST_CASE(a_large_array_is_cut_into_parts_of_whole_rows) {
  constexpr std::size_t row = 3 << 20; // 64 MiB is no multiple of 3 MiB
  constexpr std::size_t rows = 45;     // 135 MiB: parts of 21, 21 and 3 rows
  buffer bytes(row * rows);
  std::fill(bytes.bytes().begin(), bytes.bytes().end(), std::byte{1});
  flatbuffers::FlatBufferBuilder builder;
  message parts(1);
  const std::vector<std::uint64_t> shape{rows, row};
  builder.Finish(add_array(builder, parts, "x", dtype::uint8, shape, std::move(bytes).freeze()));
  BOOST_REQUIRE_EQUAL(parts.size(), 4U);
  BOOST_TEST(parts[1].size() == 21 * row);
  BOOST_TEST(parts[3].size() == 3 * row);
  const auto &array = *flatbuffers::GetRoot<wire::Array>(builder.GetBufferPointer());
  BOOST_TEST(view_array(array, parts).value().bytes() == row * rows);
}

BOOST_AUTO_TEST_CASE(a_changed_byte_fails_the_checksum) {
  flatbuffers::FlatBufferBuilder builder;
  message parts(1);
  const std::vector<std::uint64_t> shape{4};
  builder.Finish(add_array(builder, parts, "x", dtype::uint8, shape,
                           test::bytes_of(std::vector<std::uint8_t>{1, 2, 3, 4})));
  parts[1] = test::bytes_of(std::vector<std::uint8_t>{1, 2, 3, 5});
  const auto &array = *flatbuffers::GetRoot<wire::Array>(builder.GetBufferPointer());
  const auto checked = check_array(array, view_array(array, parts).value());
  BOOST_REQUIRE(!checked);
  BOOST_TEST(static_cast<int>(checked.error().code) == static_cast<int>(errc::damaged));
}

BOOST_AUTO_TEST_CASE(an_array_without_rows_needs_no_part) {
  BOOST_TEST(viewed({.shape = {0, 2}, .first_part = 0, .parts = 0}, {}).value() == 0U);
}

BOOST_AUTO_TEST_CASE(descriptors_that_do_not_fit_their_parts_are_refused) {
  BOOST_TEST(viewed({}, {8}).has_value());
  BOOST_TEST(!viewed({}, {7}));                // not whole rows
  BOOST_TEST(!viewed({}, {6}));                // a row too few
  BOOST_TEST(!viewed({}, {10}));               // a row too many
  BOOST_TEST(!viewed({}, {}));                 // the part is not there
  BOOST_TEST(!viewed({.first_part = 0}, {8})); // the body itself
  BOOST_TEST(!viewed({.first_part = 2}, {8})); // past the end
  BOOST_TEST(!viewed({.parts = 2}, {8}));      // runs past the end
  BOOST_TEST(!viewed({.first_part = 1, .parts = 0xFFFF'FFFF}, {8}));
  BOOST_TEST(!viewed({.parts = 2}, {8, 0})); // an empty part
  BOOST_TEST(!viewed({.parts = 0}, {8}));    // rows, but no bytes
  BOOST_TEST(!viewed({.type = 9}, {8}));     // no such dtype
  BOOST_TEST(!viewed({.type = 255}, {8}));
}

BOOST_AUTO_TEST_CASE(shapes_that_overflow_or_are_made_of_nothing_are_refused) {
  constexpr std::uint64_t huge = std::uint64_t{1} << 63;
  BOOST_TEST(!viewed({.shape = {}}, {8}));
  BOOST_TEST(!viewed({.shape = {1, 1, 1, 1, 1, 1, 1, 1, 8}}, {8})); // nine dimensions
  BOOST_TEST(viewed({.shape = {1, 1, 1, 1, 1, 1, 1, 8}}, {8}).has_value());
  BOOST_TEST(!viewed({.shape = {huge, 2}}, {8}));
  BOOST_TEST(!viewed({.shape = {huge, huge}}, {8}));
  BOOST_TEST(!viewed({.shape = {std::uint64_t{1} << 61, 8}}, {8})); // 2^64 is 0
  BOOST_TEST(!viewed({.shape = {0, huge}, .parts = 0}, {}));
  BOOST_TEST(!viewed({.shape = {huge, 0}, .parts = 0}, {})); // 2^63 rows of nothing
  BOOST_TEST(!viewed({.shape = {1, limits::array_part_bytes + 1}}, {8}));
}

BOOST_AUTO_TEST_CASE(two_arrays_cannot_own_one_part) {
  // Two nodes whose experts name the same part: written by hand, since the encoder does not.
  auto data = test::some_episode();
  data.nodes[0].routed_experts = test::some_experts(3);
  data.nodes[1].routed_experts = test::some_experts(5);
  auto parts = encode(data).value();
  BOOST_TEST(episode_frame::parse(parts).has_value());
  const auto *table = flatbuffers::GetRoot<wire::EpisodeFrame>(parts.front().data());
  std::vector<std::byte> bytes(parts.front().bytes().begin(), parts.front().bytes().end());
  const auto *second = table->nodes()->Get(1)->routed_experts();
  const auto at = reinterpret_cast<const std::byte *>(second) - parts.front().data();
  auto *changed = reinterpret_cast<flatbuffers::Table *>(bytes.data() + at);
  BOOST_REQUIRE(changed->SetField<std::uint32_t>(wire::Array::VT_FIRST_PART, 1, 0));
  BOOST_REQUIRE(changed->SetField<std::uint32_t>(wire::Array::VT_PARTS, 1, 0));
  auto *shape = const_cast<flatbuffers::Vector<std::uint64_t> *>(
      changed->GetPointer<const flatbuffers::Vector<std::uint64_t> *>(wire::Array::VT_SHAPE));
  shape->Mutate(0, 3);
  parts.front() = frame::copy_of(bytes);
  const auto refused = episode_frame::parse(parts);
  BOOST_REQUIRE(!refused);
  BOOST_TEST(refused.error().message.find("another array") != std::string::npos,
             refused.error().message);
}

} // namespace
} // namespace millrace
