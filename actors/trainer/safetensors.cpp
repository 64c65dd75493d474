// SPDX-License-Identifier: Apache-2.0
#include "actors/trainer/safetensors.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>
#include <utility>

#include "runtime/json.hpp"
#include "runtime/json_out.hpp"
#include "runtime/mapping.hpp"

namespace millrace {

namespace {

/// The format's names, in the order of the element types.
constexpr std::array<std::string_view, dtype_count> dtype_names{"BOOL", "U8",   "I16", "I32", "I64",
                                                                "F16",  "BF16", "F32", "F64"};

/// Longest header that is read. The format's own limit.
constexpr std::uint64_t longest_header = 100'000'000;

/// Padded with spaces so that the values start at a multiple of 8.
std::string header_of(const tensor_metadata &metadata, std::span<const tensor_item> items) {
  json::tree header;
  header["__metadata__"] = metadata;
  std::uint64_t offset = 0;
  for (const auto &item : items) {
    if (!item.present)
      continue;
    auto &entry = header[item.name];
    entry["dtype"] = dtype_names[static_cast<std::size_t>(item.type)];
    entry["shape"] = item.shape;
    entry["data_offsets"] = {offset, offset + item.bytes.size()};
    offset += item.bytes.size();
  }
  auto text = json::dump(header);
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return text;
}

result<dtype> dtype_of(std::string_view name) {
  const auto found = std::ranges::find(dtype_names, name);
  if (found == dtype_names.end())
    return fail(errc::unsupported, "its dtype is {}", name);
  return static_cast<dtype>(found - dtype_names.begin());
}

/// Errors: bad_format for a shape of other bytes than the tensor has.
status check_size(const tensor_item &item) {
  std::uint64_t bytes = size_of(item.type);
  for (const auto n : item.shape)
    if (__builtin_mul_overflow(bytes, n, &bytes))
      return fail(errc::bad_format, "its shape does not fit into memory");
  if (bytes != item.bytes.size())
    return fail(errc::bad_format, "its shape wants {} bytes; it has {}", bytes, item.bytes.size());
  return {};
}

result<std::vector<std::uint64_t>> numbers(const json::value &entry, std::string_view key) {
  const auto list = entry.get<json::value>(key);
  if (!list)
    return tl::unexpected(list.error());
  const auto items = list->items();
  if (!items)
    return tl::unexpected(items.error());
  std::vector<std::uint64_t> out;
  for (const auto &one : *items) {
    const auto number = one.as<std::uint64_t>();
    if (!number)
      return tl::unexpected(number.error());
    out.push_back(*number);
  }
  return out;
}

result<tensor_item> read_item(std::string_view name, const json::value &entry,
                              std::span<const std::byte> values) {
  const auto type_name = entry.get<std::string>("dtype");
  if (!type_name)
    return tl::unexpected(type_name.error());
  const auto type = dtype_of(*type_name);
  if (!type)
    return tl::unexpected(type.error());
  auto shape = numbers(entry, "shape");
  if (!shape)
    return tl::unexpected(std::move(shape).error());
  const auto range = numbers(entry, "data_offsets");
  if (!range)
    return tl::unexpected(range.error());
  if (range->size() != 2 || (*range)[0] > (*range)[1] || (*range)[1] > values.size())
    return fail(errc::bad_format, "its data_offsets do not lie in the {} bytes of values",
                values.size());
  tensor_item out{std::string(name), true, *type, std::move(*shape),
                  values.subspan((*range)[0], (*range)[1] - (*range)[0])};
  MILLRACE_TRY(check_size(out));
  return out;
}

status read_metadata(const json::value &entry, tensor_metadata &out) {
  const auto members = entry.members();
  if (!members)
    return tl::unexpected(members.error());
  for (const auto &one : *members) {
    auto text = one.value.as<std::string>();
    if (!text)
      return tl::unexpected(std::move(text).error());
    out.emplace(one.key, std::move(*text));
  }
  return {};
}

result<tensor_file> parse(frame file) {
  tensor_file out;
  std::uint64_t header = 0;
  if (file.size() < sizeof header)
    return fail(errc::bad_format, "{} bytes are too few for a file of tensors", file.size());
  std::memcpy(&header, file.data(), sizeof header);
  if (header > longest_header || header > file.size() - sizeof header)
    return fail(errc::bad_format, "its header has {} bytes, the file {}", header, file.size());
  const std::string_view text(reinterpret_cast<const char *>(file.data()) + sizeof header, header);
  json::document document;
  const auto root = document.parse(text);
  if (!root)
    return tl::unexpected(root.error());
  const auto members = root->members();
  if (!members)
    return tl::unexpected(members.error());
  const auto values = file.bytes().subspan(sizeof header + header);
  for (const auto &one : *members) {
    if (one.key == "__metadata__") {
      MILLRACE_TRY(read_metadata(one.value, out.metadata));
      continue;
    }
    auto item = read_item(one.key, one.value, values);
    if (!item)
      return with_context(std::move(item).error(), fmt::format("tensor '{}'", one.key));
    out.items.push_back(std::move(*item));
  }
  out.file = std::move(file);
  return out;
}

} // namespace

status write_safetensors(const std::filesystem::path &path, const tensor_metadata &metadata,
                         std::span<const tensor_item> items, file_sync sync) {
  auto file = output_file::create(path);
  if (!file)
    return tl::unexpected(std::move(file).error());
  const auto header = header_of(metadata, items);
  const std::uint64_t size = header.size();
  MILLRACE_TRY(file->write(std::as_bytes(std::span(&size, 1))));
  MILLRACE_TRY(file->write(std::as_bytes(std::span(header))));
  for (const auto &item : items)
    if (item.present)
      MILLRACE_TRY(file->write(item.bytes));
  return file->finish(sync);
}

const tensor_item *tensor_file::find(std::string_view name) const noexcept {
  const auto found = std::ranges::find(items, name, &tensor_item::name);
  return found == items.end() ? nullptr : &*found;
}

result<tensor_file> read_safetensors(const std::filesystem::path &path) {
  auto file = map_file(path);
  if (!file)
    return tl::unexpected(std::move(file).error());
  auto out = parse(std::move(*file));
  if (!out)
    return with_context(std::move(out).error(), path.string());
  return out;
}

} // namespace millrace
