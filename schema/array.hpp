// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/dtype.hpp"
#include "runtime/frame.hpp"
#include "runtime/result.hpp"
#include "schema/body.hpp"

namespace millrace {

/// A raw array: what its descriptor says, and its bytes in one or more pieces of whole rows, in
/// order. Shape: `shape`, row-major, little-endian. Owner: the message that it was read from.
struct array_view {
  std::string_view name;
  dtype type = dtype::uint8;
  std::span<const std::uint64_t> shape;
  std::vector<std::span<const std::byte>> pieces;

  std::uint64_t rows() const noexcept { return shape.empty() ? 0 : shape.front(); }
  /// Bytes of one row of the first axis.
  std::size_t row_bytes() const noexcept;
  std::size_t bytes() const noexcept { return static_cast<std::size_t>(rows()) * row_bytes(); }
};

/// Reads the descriptor `array` of a message with these parts (parts[0] is the body). Checks dtype,
/// rank, that the shape's product does not overflow and its rows have bytes, that the parts are
/// there and hold exactly the bytes of the shape, each a whole number of rows. Errors: bad_format,
/// bad_value, too_large.
result<array_view> view_array(const wire::Array &array, const message &parts);

/// Which parts of a message its arrays have taken. No two arrays share a part: a small body could
/// otherwise claim the same large part a million times over.
class part_claims {
public:
  explicit part_claims(std::size_t parts) : taken_(parts, false) {}

  /// Precondition: view_array() accepts the array. Errors: bad_format.
  status take(const wire::Array &array);

private:
  std::vector<bool> taken_;
};

/// Compares the CRC-32C of the bytes with the descriptor's. Errors: damaged.
status check_array(const wire::Array &array, const array_view &view);

/// Product of dimensions times the element size; nothing if it overflows or passes `limit`.
std::optional<std::size_t> array_bytes(std::span<const std::uint64_t> shape, dtype type,
                                       std::size_t limit);

/// Adds the parts of an array to a message and returns its descriptor. `bytes` is cut into parts of
/// whole rows, at most limits::array_part_bytes each, which keep `bytes` alive. The message must
/// have its body's place already.
flatbuffers::Offset<wire::Array> add_array(flatbuffers::FlatBufferBuilder &builder, message &parts,
                                           std::string_view name, dtype type,
                                           std::span<const std::uint64_t> shape,
                                           const frame &bytes);

} // namespace millrace
