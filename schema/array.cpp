// SPDX-License-Identifier: Apache-2.0
#include "schema/array.hpp"

#include <algorithm>

#include "runtime/crc32c.hpp"
#include "schema/limits.hpp"

namespace millrace {

std::size_t array_view::row_bytes() const noexcept {
  std::size_t bytes = size_of(type);
  for (std::size_t i = 1; i < shape.size(); ++i)
    bytes *= static_cast<std::size_t>(shape[i]);
  return bytes;
}

std::optional<std::size_t> array_bytes(std::span<const std::uint64_t> shape, dtype type,
                                       std::size_t limit) {
  std::size_t bytes = size_of(type);
  for (auto dimension : shape) {
    std::size_t product = 0;
    if (__builtin_mul_overflow(bytes, static_cast<std::size_t>(dimension), &product))
      return std::nullopt;
    bytes = product;
  }
  if (bytes > limit)
    return std::nullopt;
  return bytes;
}

result<array_view> view_array(const wire::Array &array, const message &parts) {
  array_view view;
  view.name = text_of(array.name());
  if (static_cast<std::size_t>(array.dtype()) >= dtype_count)
    return fail(errc::bad_value, "array '{}': unknown dtype {}", view.name,
                static_cast<int>(array.dtype()));
  view.type = static_cast<dtype>(array.dtype());
  view.shape = span_of(array.shape());
  if (view.shape.empty() || view.shape.size() > limits::array_rank)
    return fail(errc::bad_value, "array '{}': {} dimensions, 1 to {} are allowed", view.name,
                view.shape.size(), limits::array_rank);
  const auto row = array_bytes(view.shape.subspan(1), view.type, limits::array_part_bytes);
  const auto total = array_bytes(view.shape, view.type, limits::parts * limits::array_part_bytes);
  if (!row || !total)
    return fail(errc::too_large, "array '{}': its shape is over the limits", view.name);
  if (view.rows() > 0 && *row == 0)
    return fail(errc::bad_value, "array '{}': {} rows without bytes", view.name, view.rows());

  const std::size_t first = array.first_part();
  if (array.parts() > 0 &&
      (first == 0 || first >= parts.size() || array.parts() > parts.size() - first))
    return fail(errc::bad_format, "array '{}': parts {} to {} of a message of {}", view.name, first,
                first + array.parts(), parts.size());
  std::size_t found = 0;
  for (std::size_t i = 0; i < array.parts(); ++i) {
    const auto bytes = parts[first + i].bytes();
    if (bytes.empty() || bytes.size() > limits::array_part_bytes || *row == 0 ||
        bytes.size() % *row != 0)
      return fail(errc::bad_format, "array '{}': part {} of {} bytes is not whole rows of {}",
                  view.name, first + i, bytes.size(), *row);
    found += bytes.size();
    view.pieces.push_back(bytes);
  }
  if (found != *total)
    return fail(errc::bad_format, "array '{}': {} bytes for a shape of {}", view.name, found,
                *total);
  return view;
}

status part_claims::take(const wire::Array &array) {
  for (std::size_t i = array.first_part(); i < std::size_t{array.first_part()} + array.parts();
       ++i) {
    if (taken_[i])
      return fail(errc::bad_format, "array '{}': part {} belongs to another array",
                  text_of(array.name()), i);
    taken_[i] = true;
  }
  return {};
}

status check_array(const wire::Array &array, const array_view &view) {
  std::uint32_t crc = 0;
  for (auto piece : view.pieces)
    crc = crc32c(piece, crc);
  if (crc != array.crc32c())
    return fail(errc::damaged, "array '{}': checksum {:08x}, expected {:08x}", view.name, crc,
                array.crc32c());
  return {};
}

flatbuffers::Offset<wire::Array> add_array(flatbuffers::FlatBufferBuilder &builder, message &parts,
                                           std::string_view name, dtype type,
                                           std::span<const std::uint64_t> shape,
                                           const frame &bytes) {
  const auto first = parts.size();
  const auto rows = shape.empty() ? 0 : static_cast<std::size_t>(shape.front());
  if (rows > 0 && !bytes.empty()) {
    const auto row = bytes.size() / rows;
    MILLRACE_ASSERT(row * rows == bytes.size() && row <= limits::array_part_bytes,
                    "array '{}': {} bytes in {} rows", name, bytes.size(), rows);
    const auto step = limits::array_part_bytes / row * row;
    for (std::size_t at = 0; at < bytes.size(); at += step)
      parts.push_back(bytes.sub(at, std::min(step, bytes.size() - at)));
  }
  const auto name_at = name.empty() ? flatbuffers::Offset<flatbuffers::String>{}
                                    : builder.CreateString(name.data(), name.size());
  const auto shape_at = builder.CreateVector(shape.data(), shape.size());
  return wire::CreateArray(builder, name_at, static_cast<wire::DType>(type), shape_at,
                           static_cast<std::uint32_t>(first),
                           static_cast<std::uint32_t>(parts.size() - first), crc32c(bytes.bytes()));
}

} // namespace millrace
