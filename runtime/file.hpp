// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "runtime/result.hpp"

namespace millrace {

/// Puts a file in place whole or not at all (see output_file): whoever looks at `path` sees the old
/// bytes or the new ones. Errors: not_found, bad_argument, no_space, io (no folder, no
/// permission); then nothing is left.
status write_file_atomically(const std::filesystem::path &path, std::span<const std::byte> bytes);
status write_file_atomically(const std::filesystem::path &path, std::string_view text);

/// All bytes of a regular file. Errors: those of map_file; too_large if it holds more than `most`.
result<std::string> read_file(const std::filesystem::path &path, std::size_t most);

} // namespace millrace
