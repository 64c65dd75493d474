// SPDX-License-Identifier: Apache-2.0
#include "runtime/dtype.hpp"

#include <array>

namespace millrace {

namespace {
struct entry {
  std::string_view name;
  std::size_t size;
};
constexpr std::array<entry, dtype_count> table{{{"bool", 1},
                                                {"uint8", 1},
                                                {"int16", 2},
                                                {"int32", 4},
                                                {"int64", 8},
                                                {"float16", 2},
                                                {"bfloat16", 2},
                                                {"float32", 4},
                                                {"float64", 8}}};
} // namespace

std::size_t size_of(dtype type) noexcept { return table[static_cast<std::size_t>(type)].size; }

std::string_view name_of(dtype type) noexcept { return table[static_cast<std::size_t>(type)].name; }

std::optional<dtype> dtype_named(std::string_view name) noexcept {
  for (std::size_t i = 0; i < table.size(); ++i)
    if (table[i].name == name)
      return static_cast<dtype>(i);
  return std::nullopt;
}

} // namespace millrace
