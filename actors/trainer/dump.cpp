// SPDX-License-Identifier: Apache-2.0
#include "actors/trainer/dump.hpp"

#include <string>
#include <system_error>

#include "actors/trainer/safetensors.hpp"
#include "runtime/json_out.hpp"

namespace millrace {

namespace {

std::vector<tensor_item> all_items(const micro_batch_tensors &tensors) {
  auto items = items_of(tensors);
  for (auto &item : items.nullable)
    items.always.push_back(std::move(item));
  return std::move(items.always);
}

/// Values are strings: lists in them are JSON once more.
tensor_metadata about(const micro_batch_tensors &tensors, std::span<const tensor_item> items) {
  json::tree absent = json::tree::array();
  for (const auto &item : items)
    if (!item.present)
      absent.push_back(item.name);
  return {{"format", "millrace micro batch"},
          {"step", std::to_string(tensors.step)},
          {"rank", std::to_string(tensors.rank)},
          {"index", std::to_string(tensors.index)},
          {"padding", std::to_string(tensors.padding)},
          {"env_names", json::dump(json::tree(tensors.env_names))},
          {"absent", json::dump(absent)}};
}

} // namespace

status dump(const std::filesystem::path &dir, const micro_batch_tensors &tensors) {
  const auto folder =
      dir / fmt::format("step-{:06}", tensors.step) / fmt::format("rank-{}", tensors.rank);
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed)
    return fail(errc::io, "{}: cannot make this folder: {}", folder.string(), failed.message());
  const auto items = all_items(tensors);
  return write_safetensors(folder / fmt::format("mb-{:03}.safetensors", tensors.index),
                           about(tensors, items), items);
}

} // namespace millrace
