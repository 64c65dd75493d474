// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>

#include "runtime/frame.hpp"
#include "runtime/result.hpp"

namespace millrace {

/// A regular file, mapped read-only, as one frame that keeps the mapping alive; an empty file is an
/// empty frame. Pages are read when they are touched. The file must not be shortened while it is
/// mapped: touching what is gone ends the process (SIGBUS, docs/gotchas.md); replacing it by rename
/// is safe. Errors: not_found, bad_argument (a directory, a pipe or a device), io (no permission).
result<frame> map_file(const std::filesystem::path &path);
/// The same of an open one, its first `size` bytes; `path` stands in messages. Errors: io.
result<frame> map_file(int descriptor, std::size_t size, const std::filesystem::path &path);

} // namespace millrace
