// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <vector>

#include "runtime/output_file.hpp"
#include "runtime/result.hpp"

namespace millrace {

// The files that a policy keeps beside a checkpoint: any files, whose names, sizes and digests the
// checkpoint itself says. Source: docs/formats.md, "Checkpoints".

/// A folder with nothing in it, whatever was there. Errors: io, no_space.
status make_empty_folder(const std::filesystem::path &folder);

/// Puts all files of the folder, and of folders in it, on the disk.
/// @returns what check_folder() needs. Errors: io; bad_value for what is neither file nor folder.
result<std::vector<std::byte>> seal_folder(const std::filesystem::path &folder, file_sync sync);

/// Errors: bad_format (`sealed` is none), damaged: a file is not there, or not what it was, by
/// name.
status check_folder(const std::filesystem::path &folder, std::span<const std::byte> sealed);

} // namespace millrace
