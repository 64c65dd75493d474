// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "actors/trainer/tensor_items.hpp"
#include "runtime/frame.hpp"
#include "runtime/output_file.hpp"
#include "runtime/result.hpp"

namespace millrace {

/// Text about a file of tensors.
using tensor_metadata = std::map<std::string, std::string>;

/// Tensors in a file that other programs read, too: the safetensors format, values at multiples of
/// 8. The file is there whole or not at all. Items that are not present are left out.
/// Errors: not_found (no folder), no_space, io.
status write_safetensors(const std::filesystem::path &path, const tensor_metadata &metadata,
                         std::span<const tensor_item> items, file_sync sync = file_sync::on);

/// What is in such a file. Owner: `file` keeps the values alive.
struct tensor_file {
  frame file;
  tensor_metadata metadata;
  std::vector<tensor_item> items;

  /// Null if there is none of this name.
  const tensor_item *find(std::string_view name) const noexcept;
};

/// Of a file from anywhere: each tensor lies within it and has as many bytes as its dtype and shape
/// say. Errors, with the file's name: not_found, bad_format, unsupported (a dtype that we do not
/// carry), io.
result<tensor_file> read_safetensors(const std::filesystem::path &path);

} // namespace millrace
