// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>

#include "actors/loss/loss_config.hpp"
#include "actors/trainer/tensors.hpp"
#include "runtime/collective/collective.hpp"
#include "runtime/output_file.hpp"

namespace millrace {

/// Writes the annotated tokens of a rank: DIR/step-000001/rank-0.jsonl, whole or not at all; one
/// line for each sequence with a token to train. When every rank has its file, rank 0 adds an empty
/// file STABLE beside them: who reads the folder waits for that.
/// Source: docs/losses.md, "Token export".
class token_exporter {
public:
  /// @param folder DIR; empty: nothing is exported.
  token_exporter(std::filesystem::path folder, std::uint32_t rank)
      : folder_(std::move(folder)), rank_(rank) {}

  bool on() const noexcept { return !folder_.empty(); }

  /// A step begins; what was not finished of the one before is gone. Errors: io.
  status begin(std::uint64_t step);
  /// Errors: those of token_records(), io, no_space.
  status add(const micro_batch_tensors &tensors, const loss_config &config,
             std::span<const float> trainer_logprobs, std::span<const float> entropy);
  /// All ranks call it. Errors: io, no_space, those of the collective.
  status finish(collective &ranks);

private:
  std::filesystem::path step_folder() const;

  const std::filesystem::path folder_;
  const std::uint32_t rank_;
  std::uint64_t step_ = 0;
  std::uint64_t written_ = 0; ///< lines of the step
  std::optional<output_file> file_;
};

} // namespace millrace
