// SPDX-License-Identifier: Apache-2.0
#include "actors/trainer/dump.hpp"

#include <string>
#include <string_view>
#include <system_error>

#include "actors/trainer/tensor_items.hpp"
#include "runtime/json_out.hpp"
#include "runtime/output_file.hpp"

namespace millrace {

namespace {

/// The format's name of an element type.
std::string_view safetensors_name(dtype type) {
  switch (type) {
  case dtype::boolean:
    return "BOOL";
  case dtype::uint8:
    return "U8";
  case dtype::int16:
    return "I16";
  case dtype::int32:
    return "I32";
  case dtype::int64:
    return "I64";
  case dtype::float16:
    return "F16";
  case dtype::bfloat16:
    return "BF16";
  case dtype::float32:
    return "F32";
  case dtype::float64:
    return "F64";
  }
  MILLRACE_ASSERT(false, "dtype {}", static_cast<int>(type));
  return {};
}

std::vector<tensor_item> all_items(const micro_batch_tensors &tensors) {
  auto items = items_of(tensors);
  for (auto &item : items.nullable)
    items.always.push_back(std::move(item));
  return std::move(items.always);
}

/// Header text, padded with spaces so that the values start at a multiple of 8. Metadata values are
/// strings: lists in them are JSON once more.
std::string header_of(const micro_batch_tensors &tensors, std::span<const tensor_item> items) {
  json::tree absent = json::tree::array();
  for (const auto &item : items)
    if (!item.present)
      absent.push_back(item.name);
  json::tree header;
  auto &about = header["__metadata__"];
  about["format"] = "millrace micro batch";
  about["step"] = std::to_string(tensors.step);
  about["rank"] = std::to_string(tensors.rank);
  about["index"] = std::to_string(tensors.index);
  about["padding"] = std::to_string(tensors.padding);
  about["env_names"] = json::dump(json::tree(tensors.env_names));
  about["absent"] = json::dump(absent);
  std::uint64_t offset = 0;
  for (const auto &item : items) {
    if (!item.present)
      continue;
    auto &entry = header[item.name];
    entry["dtype"] = safetensors_name(item.type);
    entry["shape"] = item.shape;
    entry["data_offsets"] = {offset, offset + item.bytes.size()};
    offset += item.bytes.size();
  }
  auto text = json::dump(header);
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return text;
}

} // namespace

status dump(const std::filesystem::path &dir, const micro_batch_tensors &tensors) {
  const auto folder =
      dir / fmt::format("step-{:06}", tensors.step) / fmt::format("rank-{}", tensors.rank);
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed)
    return fail(errc::io, "{}: cannot make this folder: {}", folder.string(), failed.message());
  auto file = output_file::create(folder / fmt::format("mb-{:03}.safetensors", tensors.index));
  if (!file)
    return tl::unexpected(std::move(file).error());
  const auto items = all_items(tensors);
  const auto header = header_of(tensors, items);
  const std::uint64_t size = header.size();
  MILLRACE_TRY(file->write(std::as_bytes(std::span(&size, 1))));
  MILLRACE_TRY(file->write(std::as_bytes(std::span(header))));
  for (const auto &item : items)
    MILLRACE_TRY(file->write(item.bytes));
  return file->finish();
}

} // namespace millrace
