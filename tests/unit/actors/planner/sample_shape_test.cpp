// SPDX-License-Identifier: Apache-2.0
#include "actors/planner/sample_shape.hpp"

#include <boost/test/unit_test.hpp>

namespace millrace {
namespace {

/// A branch header as it comes off the wire.
class header {
public:
  header(std::vector<std::pair<std::string, std::vector<std::uint64_t>>> tensors, bool experts,
         std::vector<std::uint32_t> runs, std::vector<std::uint64_t> grid) {
    flatbuffers::FlatBufferBuilder builder;
    std::vector<flatbuffers::Offset<wire::ArrayShape>> offsets;
    for (const auto &[name, shape] : tensors)
      offsets.push_back(
          wire::CreateArrayShapeDirect(builder, name.c_str(), wire::DType::Float16, &shape));
    const std::vector<std::uint64_t> expert_shape{9, 3, 2};
    const auto expert_at =
        wire::CreateArrayShapeDirect(builder, nullptr, wire::DType::Int16, &expert_shape);
    const auto tensors_at = builder.CreateVector(offsets);
    const auto runs_at = builder.CreateVector(runs);
    const auto grid_at = builder.CreateVector(grid);
    wire::BranchHeaderBuilder branch(builder);
    branch.add_tokens(9);
    if (experts)
      branch.add_routed_experts(expert_at);
    branch.add_tensors(tensors_at);
    branch.add_image_runs(runs_at);
    branch.add_image_grid_thw(grid_at);
    builder.Finish(branch.Finish());
    bytes_ = builder.Release();
  }
  const wire::BranchHeader &operator*() const {
    return *flatbuffers::GetRoot<wire::BranchHeader>(bytes_.data());
  }

private:
  flatbuffers::DetachedBuffer bytes_;
};

BOOST_AUTO_TEST_SUITE(sample_shape_suite)

BOOST_AUTO_TEST_CASE(text_has_tokens_and_perhaps_experts) {
  const auto plain = shape_of(*header({}, false, {}, {}));
  BOOST_TEST(plain.tokens == 9U);
  BOOST_TEST(!plain.experts.has_value());
  BOOST_TEST(!plain.images.has_value());
  const auto experts = shape_of(*header({}, true, {}, {})).experts;
  BOOST_TEST((experts == array_signature{"", dtype::int16, {3, 2}}));
}

BOOST_AUTO_TEST_CASE(images_have_sorted_signatures_runs_grid_and_patches) {
  const auto shape = shape_of(*header({{"pixel_values", {8, 3}}, {"image_grid_thw", {2, 3}}}, false,
                                      {1, 2, 5, 2}, {1, 2, 2, 1, 1, 4}));
  BOOST_TEST_REQUIRE(shape.images.has_value());
  const auto &images = *shape.images;
  BOOST_TEST(
      (images.tensors == std::vector<array_signature>{{"image_grid_thw", dtype::float16, {3}},
                                                      {"pixel_values", dtype::float16, {3}}}));
  BOOST_TEST(images.patches == 8U);
  using runs = std::vector<std::pair<std::uint32_t, std::uint32_t>>;
  BOOST_TEST((images.runs == runs{{1, 2}, {5, 2}}));
  using grid = std::vector<std::array<std::uint64_t, 3>>;
  BOOST_TEST((images.grid_thw == grid{{1, 2, 2}, {1, 1, 4}}));
}

BOOST_AUTO_TEST_CASE(half_a_run_and_half_an_image_are_left_out) {
  const auto shape = shape_of(*header({{"x", {}}}, false, {1, 2, 5}, {1, 2}));
  BOOST_TEST_REQUIRE(shape.images.has_value());
  BOOST_TEST(shape.images->runs.size() == 1U);
  BOOST_TEST(shape.images->grid_thw.empty());
  BOOST_TEST(shape.images->tensors.front().dims.empty());
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
} // namespace millrace
