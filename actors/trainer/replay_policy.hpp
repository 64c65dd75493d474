// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "actors/trainer/policy.hpp"

namespace millrace {

/// The policy that sampled: the trainer's logprobs are those at sampling, and there is nothing to
/// learn. The data path alone. It keeps count of what it was given, so that a run that was resumed
/// can be compared with one that was not.
class replay_policy final : public policy {
public:
  static constexpr std::string_view name = "replay";

  bool learns() const noexcept override { return false; }
  /// Nobody knows the entropy: 0.
  status forward(const policy_batch &in, std::span<float> logprobs,
                 std::span<float> entropy) override;
  status backward(const policy_batch &in, std::span<const float> gradient) override;
  /// Errors: conflict, if it is not the step after its last.
  status step(const policy_update &in) override;
  /// A file replay.json. Source: docs/formats.md, "Checkpoints".
  status save(const std::filesystem::path &folder, std::uint64_t step) override;
  result<std::uint64_t> load(const std::filesystem::path &folder) override;
  void reset() override { state_ = {}; }

  std::uint64_t steps() const noexcept { return state_.steps; }
  /// XXH3-128 of the digest before it, the step and the step's digest, from one step to the next.
  const digest128 &digest() const noexcept { return state_.digest; }
  const component_totals &totals() const noexcept { return state_.totals; }

private:
  struct state {
    std::uint64_t steps = 0; ///< applied; the first is 1
    digest128 digest;
    component_totals totals; ///< summed over the steps
  };

  state state_;
};

} // namespace millrace
