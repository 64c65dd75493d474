// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "actors/loss/loss_tally.hpp"
#include "actors/loss/token_stats.hpp"
#include "runtime/collective/collective.hpp"

namespace millrace {

/// Of the samples of one environment in one step. Dummies count nowhere.
struct env_metrics {
  std::uint64_t sequences = 0;
  std::uint64_t tokens = 0; ///< without padding
  double reward = 0;        ///< sum over the sequences, of the traces that they came from
  component_tallies losses; ///< nothing where no policy learns
  token_stats stats;        ///< the same

  env_metrics &operator+=(const env_metrics &other) noexcept;
};

/// Values that were infinite or no number.
struct non_finite_report {
  std::string name; ///< "loss", "grad_trainer_logprobs", or that of a metric
  std::uint32_t rank = 0;
  std::uint32_t micro_batch = 0;
  std::uint64_t count = 0;
  std::uint64_t first = 0; ///< its token or sequence in the micro batch
};

/// Where the time of a rank's step went. Unit: s.
struct step_seconds {
  double upload = 0;   ///< to the policy's device; 0 where it reads the host's memory
  double widen = 0;    ///< micro batches to tensors
  double forward = 0;  ///< of the policy
  double loss = 0;     ///< losses and their gradient
  double backward = 0; ///< of the policy
  double update = 0;   ///< gradients over the ranks, and the optimizer
};

/// What one step was, of one rank or of all.
struct step_metrics {
  std::map<std::string, env_metrics, std::less<>> envs;
  std::uint64_t micro_batches = 0;
  std::uint64_t dummies = 0;
  std::uint64_t tokens = 0;       ///< of all micro batches, with padding
  std::uint64_t padding = 0;      ///< of them
  std::uint64_t wire_bytes = 0;   ///< of micro batches as they came
  std::uint64_t tensor_bytes = 0; ///< widened
  std::uint64_t upload_bytes = 0; ///< that went to the device
  std::uint64_t held_bytes = 0;   ///< most that a rank's process holds
  step_seconds seconds;           ///< of the slowest rank, each by itself
  std::vector<non_finite_report> non_finites;

  /// Over all environments.
  env_metrics total() const;
  /// Joins what another rank says.
  step_metrics &operator+=(const step_metrics &other);
};

/// Joined over all ranks, the same on each. Errors: those of the collective; bad_format for what no
/// rank of this program says.
result<step_metrics> reduce(collective &ranks, std::uint64_t step, const step_metrics &mine);

} // namespace millrace
