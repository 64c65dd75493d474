// SPDX-License-Identifier: Apache-2.0
#include "actors/planner/cut.hpp"

#include <algorithm>
#include <array>

namespace millrace {

namespace {

/// Image tokens of a sample, and those among its first `end` tokens.
std::uint64_t image_tokens(const image_shape &images, std::uint64_t end) {
  std::uint64_t count = 0;
  for (auto [start, length] : images.runs)
    if (start < end)
      count += std::min<std::uint64_t>(length, end - start);
  return count;
}

/// Position of the image token number `ordinal`, from 0. Precondition: there is one.
std::uint32_t position_of(const image_shape &images, std::uint64_t ordinal) {
  for (auto [start, length] : images.runs) {
    if (ordinal < length)
      return start + static_cast<std::uint32_t>(ordinal);
    ordinal -= length;
  }
  MILLRACE_ASSERT(false, "no image token {} in {} runs", ordinal, images.runs.size());
  return 0;
}

/// Patches of one image; the largest number if they do not fit 64 bits.
std::uint64_t patches_of(const std::array<std::uint64_t, 3> &grid) {
  std::uint64_t product = 1;
  for (auto extent : grid)
    if (__builtin_mul_overflow(product, extent, &product))
      product = ~std::uint64_t{0}; // stays there, unless a zero follows
  return product;
}

/// The longest prefix of images whose tokens fit `alive`, and where that leaves the cut.
result<kept> cut_images(const image_shape &images, std::uint32_t seq_len) {
  const auto all = image_tokens(images, ~std::uint64_t{0});
  if (all == 0)
    return fail(errc::bad_value, "an image sample to be cut has no image token: no type id of it "
                                 "is nonzero");
  if (images.patches < all)
    return fail(errc::bad_value, "pixel_values has {} rows for {} image tokens", images.patches,
                all);
  const auto patches_per_token = images.patches / all;
  const auto alive = image_tokens(images, seq_len);
  std::uint64_t tokens = 0;
  std::uint64_t patches = 0;
  kept out{.tokens = seq_len, .images = 0};
  for (const auto &grid : images.grid_thw) {
    const auto more = patches_of(grid);
    if (more / patches_per_token > alive - tokens)
      break;
    if (more > images.patches - patches)
      return fail(errc::bad_value,
                  "the first {} images of image_grid_thw have more patches than the {} rows of "
                  "pixel_values",
                  out.images + 1, images.patches);
    tokens += more / patches_per_token;
    patches += more;
    ++out.images;
  }
  if (tokens != alive)
    out.tokens = position_of(images, tokens);
  return out;
}

} // namespace

result<kept> cut(const sample_shape &sample, std::uint32_t seq_len) {
  if (sample.tokens == 0)
    return fail(errc::bad_value, "a sample without tokens");
  if (sample.images && sample.images->grid_thw.empty())
    return fail(errc::bad_value, "image tensors without a row of image_grid_thw");
  if (sample.tokens > seq_len)
    return sample.images ? cut_images(*sample.images, seq_len) : kept{seq_len, 0};
  return kept{static_cast<std::uint32_t>(sample.tokens),
              sample.images ? static_cast<std::uint32_t>(sample.images->grid_thw.size()) : 0};
}

} // namespace millrace
