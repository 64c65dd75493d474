// SPDX-License-Identifier: Apache-2.0
#include "actors/conform/case_reader.hpp"

#include <charconv>

namespace millrace {

namespace {

result<frame> read_hex(const json::value &in, std::string_view hex) {
  if (hex.size() % 2 != 0)
    return in.wrong("an odd number of hex digits");
  buffer bytes(hex.size() / 2);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    std::uint8_t byte = 0;
    const auto *digits = hex.data() + 2 * i;
    const auto end = std::from_chars(digits, digits + 2, byte, 16);
    if (end.ptr != digits + 2)
      return in.wrong("'{}' is no hex byte", std::string_view(digits, 2));
    bytes.data()[i] = std::byte{byte};
  }
  return std::move(bytes).freeze();
}

} // namespace

result<array_data> read_array(const json::value &in) {
  std::string type;
  std::string hex;
  std::vector<std::int32_t> shape;
  case_fields fields(in);
  fields.get("dtype", type);
  fields.get("data_hex", hex);
  fields.get("shape", shape);
  MILLRACE_TRY(fields.done());
  const auto known = dtype_named(type);
  if (!known)
    return in.wrong("unknown dtype '{}'", type);
  auto bytes = read_hex(in, hex);
  if (!bytes)
    return tl::unexpected(std::move(bytes).error());
  array_data out{.name = {}, .type = *known, .shape = {}, .bytes = std::move(*bytes)};
  for (auto extent : shape) {
    if (extent < 0)
      return in.wrong("a shape with {}", extent);
    out.shape.push_back(static_cast<std::uint64_t>(extent));
  }
  return out;
}

} // namespace millrace
