// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string_view>

#include "actors/planner/plan_config.hpp"
#include "runtime/result.hpp"

namespace millrace {

/// What a sequence costs a model, from the model's dimensions: FLOPs of a forward pass over a
/// sequence of n tokens are linear * n + quadratic * n * n, 2 for each multiply-add of a matrix
/// product; what is not a matrix product is not counted. Source: docs/algorithms.md, "Cost in
/// FLOPs".
/// @param config_json a Hugging Face config.json with the field names of Llama, Qwen2, Qwen3,
/// Mixtral, DeepSeek-V2 or V3.
/// Errors: bad_format if it is not JSON; bad_config, with the field's name: it is missing, out of
/// range or does not fit another one; attention that the formula does not know.
result<cost_config> flops_cost(std::string_view config_json);

/// The same of a file of at most 1 MiB. Errors: also those of read_file; all with its path.
result<cost_config> read_flops_cost(const std::filesystem::path &file);

} // namespace millrace
