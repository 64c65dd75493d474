// SPDX-License-Identifier: Apache-2.0
#include "schema/kept_tokens.hpp"

#include <boost/test/unit_test.hpp>

#include "tests/support/episodes.hpp"

using namespace millrace;
using test::bytes_of;

namespace {

array_data int32_array(const std::vector<std::int32_t> &values) {
  return {"", dtype::int32, {values.size()}, bytes_of(values)};
}

/// An answer of five tokens with these kept tokens.
frame_data episode_with(const std::vector<std::int32_t> &counts,
                        const std::vector<std::int32_t> &ids) {
  auto out = test::some_episode();
  out.nodes[1].kept_counts = int32_array(counts);
  out.nodes[1].kept_ids = int32_array(ids);
  return out;
}

/// What the door says; empty if it lets the episode in.
std::string verdict(const frame_data &episode, std::uint32_t vocab_size = 1000) {
  const auto checked = check_elements(test::parsed(episode), {.vocab_size = vocab_size});
  return checked ? "" : checked.error().message;
}

const std::vector<std::int32_t> counts{2, 0, 1, 0, 1};
const std::vector<std::int32_t> ids{7, 999, 0, 3};

} // namespace

BOOST_AUTO_TEST_SUITE(kept_tokens)

BOOST_AUTO_TEST_CASE(they_pass_the_door_and_are_read_back) {
  const auto episode = episode_with(counts, ids);
  BOOST_TEST(verdict(episode) == "");
  const auto sealed = test::sealed({episode});
  const auto node = sealed.node(0, 1);
  BOOST_TEST_REQUIRE(node.kept_counts.has_value());
  BOOST_TEST(std::ranges::equal(node.kept_counts->pieces.at(0), bytes_of(counts).bytes()));
  BOOST_TEST(std::ranges::equal(node.kept_ids->pieces.at(0), bytes_of(ids).bytes()));
  BOOST_TEST(!sealed.node(0, 0).kept_counts.has_value());
  BOOST_TEST(kept_ids_of(*node.kept_counts, 3) == 3U);
}

BOOST_AUTO_TEST_CASE(a_node_may_keep_none) {
  BOOST_TEST(verdict(episode_with({0, 0, 0, 0, 0}, {})) == "");
}

BOOST_AUTO_TEST_CASE(counts_without_ids_and_ids_without_counts_are_refused) {
  auto no_ids = episode_with(counts, ids);
  no_ids.nodes[1].kept_ids.reset();
  BOOST_TEST(verdict(no_ids) ==
             "episode 'e0', trace 0, node 1: kept_counts is there without kept_ids");
  auto no_counts = episode_with(counts, ids);
  no_counts.nodes[1].kept_counts.reset();
  BOOST_TEST(verdict(no_counts).ends_with("kept_ids is there without kept_counts"));
}

BOOST_AUTO_TEST_CASE(a_count_for_each_token_is_wanted) {
  BOOST_TEST(verdict(episode_with({2, 0, 1, 1}, ids))
                 .ends_with("kept_counts has 4 values for 5 token ids"));
  BOOST_TEST(verdict(episode_with({2, 0, 1, 0, 1, 0}, ids))
                 .ends_with("kept_counts has 6 values for 5 token ids"));
}

BOOST_AUTO_TEST_CASE(counts_that_are_negative_or_do_not_sum_to_the_ids_are_refused) {
  BOOST_TEST(verdict(episode_with({2, 0, 2, 0, 1}, ids))
                 .ends_with("kept_ids has 4 values, kept_counts sum to 5"));
  BOOST_TEST(verdict(episode_with({2, 0, 0, 0, 1}, ids))
                 .ends_with("kept_ids has 4 values, kept_counts sum to 3"));
  BOOST_TEST(verdict(episode_with({2, -1, 2, 0, 1}, ids))
                 .ends_with("kept_counts[1] is -1, it must be from 0 to 2147483647"));
}

BOOST_AUTO_TEST_CASE(ids_outside_the_vocabulary_are_refused) {
  BOOST_TEST(verdict(episode_with(counts, ids), 999)
                 .ends_with("kept_ids[1] is 999, it must be from 0 to 998"));
  BOOST_TEST(verdict(episode_with(counts, {7, 9, 0, -1}))
                 .ends_with("kept_ids[3] is -1, it must be from 0 to 999"));
  BOOST_TEST(verdict(episode_with(counts, {7, 2'147'483'647, 0, 1}), 0) == "");
  BOOST_TEST(verdict(episode_with(counts, {7, 9, 0, -1}), 0) != "");
}

BOOST_AUTO_TEST_CASE(another_type_or_shape_is_refused) {
  auto wide = episode_with(counts, ids);
  wide.nodes[1].kept_ids =
      array_data{"", dtype::int64, {4}, bytes_of(std::vector<std::int64_t>(4))};
  BOOST_TEST(verdict(wide).ends_with("kept_ids is int64 of 1 dimensions, int32 of one is wanted"));
  auto square = episode_with(counts, ids);
  square.nodes[1].kept_ids->shape = {2, 2};
  BOOST_TEST(
      verdict(square).ends_with("kept_ids is int32 of 2 dimensions, int32 of one is wanted"));
}

BOOST_AUTO_TEST_CASE(bytes_that_changed_are_refused) {
  auto parts = encode(episode_with(counts, ids)).value();
  std::vector<std::byte> changed(parts.back().bytes().begin(), parts.back().bytes().end());
  changed[0] = std::byte{8};
  parts.back() = frame::copy_of(changed);
  const auto checked =
      check_elements(episode_frame::parse(std::move(parts)).value(), {.vocab_size = 1000});
  BOOST_TEST_REQUIRE(!checked.has_value());
  BOOST_TEST((checked.error().code == errc::damaged));
}

BOOST_AUTO_TEST_CASE(they_are_read_at_any_address_and_in_any_pieces) {
  std::vector<std::byte> bytes(4 * counts.size() + 1);
  std::ranges::copy(std::as_bytes(std::span(counts)), bytes.begin() + 1);
  const std::vector<std::uint64_t> shape{counts.size()};
  const std::vector<std::uint64_t> ids_shape{ids.size()};
  const auto id_bytes = std::as_bytes(std::span(ids));
  for (std::size_t first = 0; first <= counts.size(); ++first) {
    const auto all = std::span<const std::byte>(bytes).subspan(1);
    const std::optional in_two(
        array_view{"", dtype::int32, shape, {all.first(4 * first), all.subspan(4 * first)}});
    const std::optional whole(array_view{"", dtype::int32, ids_shape, {id_bytes}});
    BOOST_TEST(check_kept_counts({in_two, whole}, 5).has_value());
    for (std::size_t n = 0; n <= counts.size(); ++n) {
      std::uint64_t sum = 0;
      for (std::size_t i = 0; i < n; ++i)
        sum += static_cast<std::uint64_t>(counts[i]);
      BOOST_TEST(kept_ids_of(*in_two, n) == sum);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
