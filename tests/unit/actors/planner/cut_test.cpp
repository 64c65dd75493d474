// SPDX-License-Identifier: Apache-2.0
#include "actors/planner/cut.hpp"

#include <boost/test/unit_test.hpp>

namespace millrace {
namespace {

BOOST_AUTO_TEST_SUITE(cut_suite)

/// Two images of four tokens at positions 2..5 and 7..10 of 13; four patches a token.
sample_shape two_images() {
  sample_shape out{.tokens = 13};
  out.images = image_shape{
      .tensors = {}, .runs = {{2, 4}, {7, 4}}, .grid_thw = {{1, 4, 4}, {1, 4, 4}}, .patches = 32};
  return out;
}

kept cut_at(const sample_shape &sample, std::uint32_t seq_len) {
  const auto got = cut(sample, seq_len);
  BOOST_TEST_REQUIRE(got.has_value(), seq_len);
  return *got;
}

BOOST_AUTO_TEST_CASE(text_keeps_its_first_tokens) {
  BOOST_TEST((cut_at({.tokens = 5}, 8) == kept{5, 0}));
  BOOST_TEST((cut_at({.tokens = 8}, 8) == kept{8, 0}));
  BOOST_TEST((cut_at({.tokens = std::uint64_t{1} << 40}, 8) == kept{8, 0}));
}

BOOST_AUTO_TEST_CASE(an_image_is_kept_whole_or_not_at_all) {
  const auto sample = two_images();
  BOOST_TEST((cut_at(sample, 13) == kept{13, 2}));
  BOOST_TEST((cut_at(sample, 11) == kept{11, 2}));
  BOOST_TEST((cut_at(sample, 10) == kept{7, 1}));
  BOOST_TEST((cut_at(sample, 8) == kept{7, 1}));
  BOOST_TEST((cut_at(sample, 7) == kept{7, 1}));
  BOOST_TEST((cut_at(sample, 6) == kept{6, 1}));
  BOOST_TEST((cut_at(sample, 5) == kept{2, 0}));
  BOOST_TEST((cut_at(sample, 2) == kept{2, 0}));
  BOOST_TEST((cut_at(sample, 1) == kept{1, 0}));
}

BOOST_AUTO_TEST_CASE(images_that_share_a_run_are_told_apart_by_their_patches) {
  auto sample = two_images();
  sample.images->runs = {{2, 8}};
  BOOST_TEST((cut_at(sample, 9) == kept{6, 1}));
}

BOOST_AUTO_TEST_CASE(an_image_at_the_start_may_leave_nothing) {
  auto sample = two_images();
  sample.images->runs = {{0, 4}, {7, 4}};
  BOOST_TEST((cut_at(sample, 3) == kept{0, 0}));
}

BOOST_AUTO_TEST_CASE(an_image_too_large_for_its_type_ids_is_never_kept) {
  auto sample = two_images();
  const auto huge = ~std::uint64_t{0};
  sample.images->grid_thw[0] = {huge, huge, huge};
  BOOST_TEST((cut_at(sample, 12) == kept{2, 0}));
}

BOOST_AUTO_TEST_CASE(what_cannot_be_cut_is_rejected) {
  BOOST_TEST(!cut({.tokens = 0}, 8));
  auto no_type_ids = two_images();
  no_type_ids.images->runs.clear();
  BOOST_TEST(!cut(no_type_ids, 8));
  BOOST_TEST((cut_at(no_type_ids, 13) == kept{13, 2}));
  auto few_patches = two_images();
  few_patches.images->patches = 7;
  BOOST_TEST(!cut(few_patches, 8));
  auto no_grid = two_images();
  no_grid.images->grid_thw.clear();
  BOOST_TEST(!cut(no_grid, 13));
  // Three patches a token; each image has four tokens and two patches over.
  auto few_rows = two_images();
  few_rows.images->patches = 24;
  few_rows.images->grid_thw = {{1, 2, 7}, {1, 2, 7}};
  BOOST_TEST(!cut(few_rows, 12));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
} // namespace millrace
