// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/result.hpp"

namespace millrace {

/// Config keys: trainer.*.
struct trainer_config {
  /// Key: trainer.timeout. Unit: s. Range: 1 to 86,400. Default: 300. How long ranks wait for each
  /// other in a collective before they give up. Less: a rank that hangs is noticed sooner; one that
  /// only stalls ends the run.
  double timeout_s = 300;

  /// Key: trainer.policy. What is trained. Default: "replay": it computes no gradient, and counts
  /// what it was given.
  std::string policy = "replay";

  /// Key: trainer.checkpoint_every. Unit: steps. Range: 0 (never) to 1e9. Default: 0. More often: a
  /// job that restarts has less to do again, and saving takes more of its time.
  std::uint64_t checkpoint_every = 0;

  /// All rules that are broken, each with its key's name.
  std::vector<error> validate() const;
};

} // namespace millrace
