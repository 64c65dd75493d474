// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "schema/array.hpp"

namespace millrace {

/// The image tensor that says of how many patches each image is made.
inline constexpr std::string_view image_grid_name = "image_grid_thw";

/// Patches of one image over time, height and width, as the source wrote them.
using image_extents = std::array<std::int64_t, 3>;

/// The rows of an image grid: int32 or int64 [images, 3]. Errors: bad_value if it is none.
result<std::vector<image_extents>> read_image_grid(const array_view &grid);

} // namespace millrace
