// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "actors/trainer/tensors.hpp"
#include "runtime/result.hpp"

namespace millrace {

/// Writes one micro batch as DIR/step-000001/rank-0/mb-000.safetensors, whole or not at all, and
/// makes the folders. Its __metadata__ holds step, rank, index, padding, env_names and the names of
/// absent streams. Source: docs/formats.md, "Tensor dumps". Errors: io.
status dump(const std::filesystem::path &dir, const micro_batch_tensors &tensors);

} // namespace millrace
