// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace millrace {

/// Element types of arrays on the wire and of tensors. The numbers are those of wire::DType.
enum class dtype : std::uint8_t {
  boolean = 0,
  uint8 = 1,
  int16 = 2,
  int32 = 3,
  int64 = 4,
  float16 = 5,
  bfloat16 = 6,
  float32 = 7,
  float64 = 8,
};
inline constexpr std::size_t dtype_count = 9;

/// Bytes of one element.
std::size_t size_of(dtype type) noexcept;
/// numpy's name: "bool", "uint8", "int16", ...
std::string_view name_of(dtype type) noexcept;
/// From numpy's name; nothing for a name that we do not carry.
std::optional<dtype> dtype_named(std::string_view name) noexcept;

} // namespace millrace
