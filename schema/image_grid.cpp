// SPDX-License-Identifier: Apache-2.0
#include "schema/image_grid.hpp"

#include <cstring>

namespace millrace {

namespace {

/// Parts lie at any address, so rows are copied out.
template <class T> std::vector<image_extents> rows_of(const array_view &grid) {
  std::vector<image_extents> out;
  for (auto bytes : grid.pieces)
    for (std::array<T, 3> row; bytes.size() >= sizeof row; bytes = bytes.subspan(sizeof row)) {
      std::memcpy(row.data(), bytes.data(), sizeof row);
      out.push_back({row[0], row[1], row[2]});
    }
  return out;
}

} // namespace

result<std::vector<image_extents>> read_image_grid(const array_view &grid) {
  const bool rows_of_three = grid.shape.size() == 2 && grid.shape[1] == 3;
  if (rows_of_three && grid.type == dtype::int64)
    return rows_of<std::int64_t>(grid);
  if (rows_of_three && grid.type == dtype::int32)
    return rows_of<std::int32_t>(grid);
  return fail(errc::bad_value, "{} is {} with {} dimensions, want int32 or int64 [images, 3]",
              image_grid_name, name_of(grid.type), grid.shape.size());
}

} // namespace millrace
