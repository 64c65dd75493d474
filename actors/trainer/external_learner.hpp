// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "actors/trainer/feed_desk.hpp"
#include "actors/trainer/learner.hpp"

namespace millrace {

/// Has processes in Python train: hands them steps over a desk, and is done with a step or a
/// checkpoint when all of them are. Source: docs/decisions/0009-python-trainers.md.
class external_learner final : public learner {
public:
  /// @param dump folder for the tensors of every micro batch; empty: none
  explicit external_learner(std::shared_ptr<feed_desk> desk, std::filesystem::path dump = {})
      : desk_(std::move(desk)), dump_(std::move(dump)) {}

  status begin(std::uint64_t generation) override;
  /// Errors: timed_out, when one of them is gone; what ended the run; conflict, if it is not the
  /// step after its last.
  status step(const learner_step &in) override;
  /// The files of a checkpoint are theirs: what is saved here is only the step. Errors: as step().
  result<std::vector<std::byte>> save(const std::filesystem::path &folder) override;
  /// Waits until all have come: from then on the rank counts as there, and others may wait for it
  /// with a deadline. They load the files when the generation begins.
  status load(std::span<const std::byte> saved, const std::filesystem::path &folder,
              std::uint64_t step) override;
  /// Waits, too.
  void reset() override;

private:
  /// Saved as these bytes, little-endian, without padding. Source: docs/formats.md, "Checkpoints".
  struct state {
    std::uint64_t version = 1;
    std::uint64_t steps = 0; ///< applied; the first is 1
  };
  static_assert(sizeof(state) == 16);

  const std::shared_ptr<feed_desk> desk_;
  const std::filesystem::path dump_;
  state state_;
  std::string folder_; ///< of the checkpoint that was loaded
};

/// Precondition: there is a desk.
std::unique_ptr<learner> make_external_learner(std::shared_ptr<feed_desk> desk,
                                               std::filesystem::path dump = {});

} // namespace millrace
