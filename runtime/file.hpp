// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "runtime/result.hpp"

namespace millrace {

/// Puts a file in place whole or not at all: writes a temporary file beside it, syncs it, renames
/// it over `path` and syncs the folder. Whoever looks at `path` sees the old bytes or the new ones.
/// Errors: io (no folder, no permission, disk full), and then the temporary file is gone.
status write_file_atomically(const std::filesystem::path &path, std::span<const std::byte> bytes);
status write_file_atomically(const std::filesystem::path &path, std::string_view text);

/// All bytes of a regular file. Errors: not_found, io, bad_argument for a directory, too_large if
/// it holds more than `most` bytes.
result<std::string> read_file(const std::filesystem::path &path, std::size_t most);

} // namespace millrace
