// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "runtime/digest.hpp"
#include "runtime/frame.hpp"
#include "runtime/output_file.hpp"
#include "runtime/result.hpp"

namespace millrace {

/// Whose checkpoints, and where. A file holds one rank at one step:
/// FOLDER/step-000010/rank-0.ckpt. What is too large for it lies beside it, in the folder rank-0.
/// Source: docs/formats.md, "Checkpoints".
struct checkpoint_owner {
  std::filesystem::path folder; ///< STATE/checkpoints
  std::string run;              ///< run.id
  std::string policy;           ///< its name in the config
  std::uint32_t rank = 0;
  std::uint32_t ranks = 1;
  /// Id of the folder of the planner's log: one planner does not load what another's ranks saved.
  digest128 planner = {};
  file_sync sync = file_sync::on;
};

std::filesystem::path checkpoint_path(const checkpoint_owner &owner, std::uint64_t step);

/// For the files that belong to it.
std::filesystem::path checkpoint_folder(const checkpoint_owner &owner, std::uint64_t step);

/// Writes a checkpoint, whole or not at all, and makes the folders. One that is there is replaced.
/// Errors: io, no_space; nothing is left of it.
status save_checkpoint(const checkpoint_owner &owner, std::uint64_t step,
                       std::span<const std::byte> state);

/// What save_checkpoint() was given. The bytes are those of the mapped file.
/// Errors, all with the file's name: not_found; unsupported (of a later version of the format);
/// damaged; conflict (of another run, planner's folder, policy, rank, number of ranks or step); io.
result<frame> read_checkpoint(const checkpoint_owner &owner, std::uint64_t step);

/// Removes the owner's checkpoints of lower steps with their folders, and what an interrupted save
/// has left there; folders that are then empty, too. Leaves alone what it does not know. Errors:
/// io: the first that could not be removed; the others are.
status remove_checkpoints_below(const checkpoint_owner &owner, std::uint64_t step);

} // namespace millrace
