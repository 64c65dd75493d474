// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "actors/trainer/learner.hpp"

namespace millrace {

/// Computes no gradient: keeps count of what it was given, so that a run that was resumed can be
/// compared with one that was not.
class replay_policy final : public learner {
public:
  static constexpr std::string_view name = "replay";

  status begin(std::uint64_t) override { return {}; }
  /// Errors: conflict, if it is not the step after its last.
  status step(const learner_step &in) override;
  result<std::vector<std::byte>> save(const std::filesystem::path &folder) override;
  status load(std::span<const std::byte> saved, const std::filesystem::path &folder,
              std::uint64_t step) override;
  void reset() override { state_ = {}; }

  std::uint64_t steps() const noexcept { return state_.steps; }
  /// XXH3-128 of the digest before it, the step and the step's digest, from one step to the next.
  const digest128 &digest() const noexcept { return state_.digest; }
  const component_totals &totals() const noexcept { return state_.totals; }

private:
  /// Saved as these bytes, little-endian, without padding. Source: docs/formats.md, "Checkpoints".
  struct state {
    std::uint64_t version = 1;
    std::uint64_t steps = 0; ///< applied; the first is 1
    digest128 digest;
    component_totals totals; ///< summed over the steps
  };
  static_assert(sizeof(state) == 56);

  state state_;
};

} // namespace millrace
